#include "engine/power.h"

#include <stdlib.h>

#include "base/integer.h"

enum { ONE = 1 << 20, MILLI = 1000 };  // fixed point of voltage_scale

__extension__ typedef __int128 int128;

// (khz / max_khz) ^ (exponent_milli / 1000) in units of 1/ONE: whole powers multiplied out, the rest interpolated.
static int64_t voltage_scale(const ftl_arch *arch, int64_t khz) {
  int64_t ratio = khz * ONE / arch->clock_sm_max_khz;
  int64_t whole = arch->power_voltage_exponent_milli / MILLI, rest = arch->power_voltage_exponent_milli % MILLI;
  int64_t power = ONE;
  for (int64_t i = 0; i < whole; i++) power = power * ratio / ONE;
  int64_t next = power * ratio / ONE;
  return power + (next - power) * rest / MILLI;
}

// Energies in fJ; a launch of seconds at kilowatts is 10^18 fJ and more, so 128 bits.
static int128 core_energy_fj(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs) {
  const ftl_sm_counters *sm = &totals->sm;
  return (int128)sm->active_cycles * arch->power_sm_cycle_fj +
         (int128)(sm->warp_insts - sm->tensor_insts) * arch->power_inst_fj +
         (int128)tensor_macs * arch->power_tensor_mac_fj +
         (int128)sm->shared_wavefronts * arch->shared_bytes_per_cycle * arch->power_shared_byte_fj +
         (int128)sm->l1_load_sectors * arch->power_l1_sector_fj;
}

static int128 memory_energy_fj(const ftl_memory_counters *memory, int64_t l2_sector_fj, int64_t dram_byte_fj) {
  return (int128)memory->l2_sectors_from_sms * l2_sector_fj +
         (int128)(memory->dram_read_bytes + memory->dram_write_bytes) * dram_byte_fj;
}

static int64_t mean_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int128 memory_fj,
                       int64_t sm_khz) {
  if (totals->cycles <= 0) return arch->power_static_mw;
  int128 energy_fj = core_energy_fj(arch, totals, tensor_macs) * voltage_scale(arch, sm_khz) / ONE + memory_fj;
  // 1 fJ / (cycles / khz) = khz / cycles * 10^-12 W = khz / cycles * 10^-9 mW.
  return arch->power_static_mw + (int64_t)(energy_fj * sm_khz / totals->cycles / 1000000000);
}

int64_t ftl_power_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t sm_khz) {
  int128 memory_fj = memory_energy_fj(&totals->memory, arch->power_l2_sector_fj, arch->power_dram_byte_fj);
  return mean_mw(arch, totals, tensor_macs, memory_fj, sm_khz);
}

int64_t ftl_power_board_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t sm_khz) {
  int128 memory_fj = memory_energy_fj(&totals->memory, arch->power_board_l2_sector_fj, arch->power_board_dram_byte_fj);
  return mean_mw(arch, totals, tensor_macs, memory_fj, sm_khz);
}

int64_t ftl_power_top_khz(const ftl_arch *arch, int64_t tensor_macs) {
  int64_t khz = arch->clock_sm_max_khz, step_khz = arch->clock_sm_step_khz;
  int64_t above_khz = tensor_macs > 0 ? khz - arch->clock_sm_tensor_max_khz : 0;
  if (above_khz > 0) khz -= ftl_round_up(above_khz, step_khz);
  return khz > arch->clock_sm_min_khz ? khz : arch->clock_sm_min_khz;
}

static int64_t limit_mw(const ftl_arch *arch, int64_t cycles, int64_t num_in_a_row, int64_t khz) {
  bool is_long = (int128)cycles * num_in_a_row * MILLI >= (int128)arch->power_limit_delay_us * khz;
  return is_long ? arch->power_limit_mw : arch->power_burst_limit_mw;
}

int64_t ftl_power_excess_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t sm_khz) {
  return ftl_power_mw(arch, totals, tensor_macs, sm_khz) - limit_mw(arch, totals->cycles, num_in_a_row, sm_khz);
}

int64_t ftl_power_clock_khz(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t most_khz) {
  int64_t khz = most_khz;
  for (; khz > arch->clock_sm_min_khz; khz -= arch->clock_sm_step_khz)
    if (ftl_power_excess_mw(arch, totals, tensor_macs, num_in_a_row, khz) <= 0) return khz;
  return arch->clock_sm_min_khz;
}

// Of a dip at an even pace from its begin to its end, the part (1/ONE) that a launch of so many ns has seen.
static int64_t part_of_dip(const ftl_arch *arch, int64_t ns) {
  int64_t begin_ns = arch->clock_onset_begin_us * 1000, end_ns = arch->clock_onset_end_us * 1000;
  if (ns <= begin_ns) return 0;
  return ns < end_ns ? (ns - begin_ns) * ONE / (end_ns - begin_ns) : ONE;
}

int64_t ftl_power_onset_khz(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t sm_khz) {
  int64_t from_mw = num_in_a_row > 1 ? arch->clock_onset_stream_power_mw : arch->clock_onset_power_mw;
  int64_t above_mw = ftl_power_board_mw(arch, totals, tensor_macs, sm_khz) - from_mw;
  if (above_mw <= 0 || totals->cycles <= 0) return sm_khz;
  int64_t ns = (int64_t)((int128)totals->cycles * 1000000 / sm_khz);
  int64_t lost_ns = above_mw * arch->clock_onset_lost_ns_per_w / MILLI * part_of_dip(arch, ns) / ONE;
  int64_t khz = (int64_t)((int128)ftl_power_top_khz(arch, tensor_macs) * ns / (ns + lost_ns));
  return khz < sm_khz ? khz : sm_khz;
}

bool ftl_power_clock_converges(const ftl_arch *arch, int64_t before_khz, int64_t change_khz) {
  return 2 * change_khz * change_khz < arch->clock_sm_step_khz * llabs(before_khz);
}
