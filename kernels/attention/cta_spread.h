/* How much CTAs that do the same differ in time while every place of every SM is taken. Of each SM's CTAs, in the order
 * in which they start, so many in a row as it holds are a wave (x), and have a place in it. took: mean time;
 * took_inside: standard deviation over the SMs of a GPC (micro/gpc_map.h), mean square over the places; drift: that of
 * an iteration for each other CTA on the SM, as a share, if all are independent: took_inside / took *
 * sqrt(iterations / others). clock_between: standard deviation over the SMs of cycles a nanosecond, from each one's
 * first start to its last: GPCs have clocks of their own under load, SMs of a GPC the same (x is the number of keys).
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gpc_map.h"

namespace cta_spread {

struct CtaRecord {
  uint64_t start_cycle, stop_cycle, start_ns;
  uint32_t sm;
};

/* Per SM, in the order in which they start. */
inline std::vector<std::vector<CtaRecord>> by_sm(const std::vector<CtaRecord> &all) {
  std::vector<std::vector<CtaRecord>> sms((size_t)bench::num_sms());
  for (const CtaRecord &r : all) sms[r.sm].push_back(r);
  for (std::vector<CtaRecord> &sm : sms)
    std::sort(sm.begin(), sm.end(),
              [](const CtaRecord &a, const CtaRecord &b) { return a.start_cycle < b.start_cycle; });
  return sms;
}

inline void report_clocks(const char *benchmark, const char *variant, const std::vector<std::vector<CtaRecord>> &sms,
                          int keys) {
  std::vector<double> cycles_a_ns;
  for (const std::vector<CtaRecord> &sm : sms)
    cycles_a_ns.push_back((double)(sm.back().start_cycle - sm.front().start_cycle) /
                          (double)(sm.back().start_ns - sm.front().start_ns));
  double mean = bench::mean(cycles_a_ns);
  bench::row(benchmark, variant, "keys", keys, "clock", mean * 1000, "MHz");
  bench::row(benchmark, variant, "keys", keys, "clock_between", 1e6 * bench::deviation(cycles_a_ns) / mean, "ppm");
}

inline void report(const char *benchmark, const char *variant, const bench::GpcMap &map,
                   const std::vector<std::vector<CtaRecord>> &sms, int ctas_per_sm, int iterations) {
  size_t least = SIZE_MAX;
  for (const std::vector<CtaRecord> &sm : sms) least = std::min(least, sm.size());
  size_t per_sm = (size_t)ctas_per_sm, num_waves = least / per_sm;
  for (size_t wave = 0; wave + 1 < num_waves; wave++) { /* beside the last, places are empty */
    std::vector<double> means;
    double squares = 0;
    for (size_t place = 0; place < per_sm; place++) {
      std::vector<uint32_t> ids;
      std::vector<double> took;
      for (const std::vector<CtaRecord> &sm : sms) {
        const CtaRecord &r = sm[wave * per_sm + place];
        ids.push_back(r.sm);
        took.push_back((double)(r.stop_cycle - r.start_cycle));
      }
      means.push_back(bench::mean(took));
      double inside = bench::spread_by_gpc(map, ids, took).inside;
      squares += inside * inside / ctas_per_sm;
    }
    double took = bench::mean(means), inside = sqrt(squares);
    bench::row(benchmark, variant, "wave", (double)wave, "took", took, "cycles");
    bench::row(benchmark, variant, "wave", (double)wave, "took_inside", inside, "cycles");
    if (ctas_per_sm > 1)
      bench::row(benchmark, variant, "wave", (double)wave, "drift",
                 1000 * inside / took * sqrt((double)iterations / (ctas_per_sm - 1)), "permille");
  }
}

}  // namespace cta_spread
