#include "workloads/score_scaling.h"

static const float log2_e = 1.44269504088896340736f;
static const float ln_2 = 0.69314718055994530942f;

ftl_score_scaling ftl_score_scaling_of(const ftl_attention *a) {
  return (ftl_score_scaling){.place = a->scaling, .scale = a->scale};
}

// Until the row maximum is known.
static bool keeps_scores(ftl_score_scaling s) {
  return s.place == FTL_SCALING_EXPONENT || s.place == FTL_SCALING_APART || s.place == FTL_SCALING_BY_TILE;
}

static void multiply(ftl_builder *b, int32_t scores, float factor) {
  ftl_binary(b, FTL_ELEM_MUL, scores, scores, ftl_immediate(factor));
}

void ftl_scale_scores(ftl_builder *b, ftl_score_scaling s, int32_t scores) {
  switch (s.place) {
    case FTL_SCALING_SCORES:
      multiply(b, scores, s.scale * log2_e);
      break;
    case FTL_SCALING_TWICE:
      multiply(b, scores, s.scale);
      multiply(b, scores, log2_e);
      break;
    default:
      break;
  }
}

float ftl_score_scaling_to_log2(ftl_score_scaling s) { return keeps_scores(s) ? s.scale * log2_e : 1.0F; }

float ftl_score_scaling_to_natural(ftl_score_scaling s) { return keeps_scores(s) ? s.scale : ln_2; }

bool ftl_scores_are_shifted_apart(ftl_score_scaling s, bool masked) {
  return s.place == FTL_SCALING_APART || (s.place == FTL_SCALING_BY_TILE && masked);
}
