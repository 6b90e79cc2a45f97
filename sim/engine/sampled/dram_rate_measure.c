#include "engine/sampled/dram_rate.h"
#include "machine/dram/dram.h"

enum { READS = 100, COPY = 50 };

// All that the channel model reads. It is given these keys alone, so that no other can have a part in the rates.
static ftl_arch channel_keys_of(const ftl_arch *arch) {
  return (ftl_arch){.l1_line_bytes = arch->l1_line_bytes,
                    .clock_dram_khz = arch->clock_dram_khz,
                    .dram_num_channels = arch->dram_num_channels,
                    .dram_burst_bytes = arch->dram_burst_bytes,
                    .dram_burst_cycles = arch->dram_burst_cycles,
                    .dram_num_bank_groups = arch->dram_num_bank_groups,
                    .dram_banks_per_group = arch->dram_banks_per_group,
                    .dram_row_bytes = arch->dram_row_bytes,
                    .dram_chunk_bytes = arch->dram_chunk_bytes,
                    .dram_trcd_cycles = arch->dram_trcd_cycles,
                    .dram_trp_cycles = arch->dram_trp_cycles,
                    .dram_tras_cycles = arch->dram_tras_cycles,
                    .dram_tcl_cycles = arch->dram_tcl_cycles,
                    .dram_tccd_long_cycles = arch->dram_tccd_long_cycles,
                    .dram_trrd_cycles = arch->dram_trrd_cycles,
                    .dram_twtr_cycles = arch->dram_twtr_cycles,
                    .dram_trtw_cycles = arch->dram_trtw_cycles,
                    .dram_trefi_cycles = arch->dram_trefi_cycles,
                    .dram_trfc_cycles = arch->dram_trfc_cycles,
                    .dram_queue_entries = arch->dram_queue_entries,
                    .dram_most_bypasses = arch->dram_most_bypasses,
                    .dram_ecc_inline_milli = arch->dram_ecc_inline_milli};
}

uint64_t ftl_dram_rate_hash(const ftl_arch *arch) {
  ftl_arch keys = channel_keys_of(arch);
  return ftl_arch_hash(&keys);
}

ftl_status ftl_dram_rate_measure(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error) {
  ftl_arch keys = channel_keys_of(arch);
  ftl_status status = ftl_dram_sustained(&keys, READS, &rate->read_bytes_per_s, error);
  if (status == FTL_OK) status = ftl_dram_sustained(&keys, COPY, &rate->copy_bytes_per_s, error);
  return status;
}
