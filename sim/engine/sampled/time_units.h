// The units in which sampled counts time. A quantity that is not in whole SM cycles says so by the end of its name:
//   _ticks       1/65536 SM cycle: what requests take of what they share, and the walk of tile steps
//   _sixteenths  1/16 SM cycle: what the segments of a CTA take, as runs of one SM tell
//   _256ths      1/256 SM cycle: the read port of such an SM
#ifndef FTL_ENGINE_SAMPLED_TIME_UNITS_H
#define FTL_ENGINE_SAMPLED_TIME_UNITS_H

enum {
  FTL_TICKS_PER_CYCLE = 65536,
  FTL_SIXTEENTHS_PER_CYCLE = 16,
  FTL_TICKS_PER_SIXTEENTH = FTL_TICKS_PER_CYCLE / FTL_SIXTEENTHS_PER_CYCLE,
  FTL_256THS_PER_CYCLE = 256,
};

#endif
