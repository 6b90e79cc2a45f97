// Power and the SM clock that it allows.
// Models: the limiter as the highest clock step whose average power over the launch is within a limit: one for bursts,
//   and a lower one once the load has lasted for a while; a lower top clock for kernels with tensor operations; energy
//   per counted operation, with a core voltage that follows the clock.
// Does not model: temperature, the time that a clock takes to settle (some 0.1 ms), leakage that follows voltage.
// Numbers: power.* and clock.* keys. All integers: of the same counts the step is
// the same on every host. (The counts of sampled come from exp and hypot: docs/architecture.md.)
#ifndef FTL_ENGINE_POWER_H
#define FTL_ENGINE_POWER_H

#include <stdbool.h>

#include "arch/arch.h"
#include "engine/totals.h"

// Average power (mW) of a launch that counted `totals` with `tensor_macs` multiply-adds, if its SM cycles passed at
// sm_khz.
int64_t ftl_power_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t sm_khz);

// The highest step, sm_max_khz - n * sm_step_khz, that a launch may run at if it draws no power: with tensor operations
// within sm_tensor_max_khz.
int64_t ftl_power_top_khz(const ftl_arch *arch, int64_t tensor_macs);

// The same by what the board draws for L2 and DRAM where little else runs, which a burst of wgmma shows only in part.
int64_t ftl_power_board_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t sm_khz);

// Launches timed back to back until the one whose time is the median: the 11th of 21.
enum { FTL_POWER_STREAM_LAUNCHES = 11 };

// The clock of the last of num_in_a_row launches back to back, by what one of them counted: most_khz, or so many steps
// below it that it keeps within the limit; sm_min_khz if none does. The limit is power.limit_mw if all of them take
// power.limit_delay_us or more at that step, else power.burst_limit_mw.
int64_t ftl_power_clock_khz(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t most_khz);

// By how much (mW) the last of num_in_a_row launches exceeds the limit at sm_khz; 0 or less where it keeps it.
int64_t ftl_power_excess_mw(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t sm_khz);

// The mean clock of the last of num_in_a_row launches, one of which counted `totals` at sm_khz, which the limit allows:
// some 0.1 ms after a load begins its clock dips from the highest step, by more the more power it draws. That takes
// more behind another launch than on a chip that was idle. At most sm_khz.
int64_t ftl_power_onset_khz(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row,
                            int64_t sm_khz);

// Two changes of the clock, one after the other: whether the next, smaller than the second as that is than the first,
// will be less than half a step.
bool ftl_power_clock_converges(const ftl_arch *arch, int64_t before_khz, int64_t change_khz);

#endif
