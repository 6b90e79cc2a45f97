// A question in words: the canonical text of a specification, split into what is asked for and what was chosen.
#include <stdio.h>
#include <string.h>

#include "report/page_internal.h"

// What an engineer chooses, in the order in which it is shown; the first ones always. Every other parameter says what
// is computed, or under which conditions.
static const ftl_param choices[] = {FTL_PARAM_block_m,        FTL_PARAM_block_n,    FTL_PARAM_num_warps,
                                    FTL_PARAM_num_stages,     FTL_PARAM_block_k,    FTL_PARAM_warps_n,
                                    FTL_PARAM_groups_n,       FTL_PARAM_splits,     FTL_PARAM_schedule,
                                    FTL_PARAM_overlap,        FTL_PARAM_persistent, FTL_PARAM_turns,
                                    FTL_PARAM_q_stages,       FTL_PARAM_cluster,    FTL_PARAM_fused,
                                    FTL_PARAM_elementwise,    FTL_PARAM_mma,        FTL_PARAM_copy,
                                    FTL_PARAM_store,          FTL_PARAM_dq,         FTL_PARAM_head_dim_multiple,
                                    FTL_PARAM_q_operand,      FTL_PARAM_refill,     FTL_PARAM_tile_order,
                                    FTL_PARAM_tile_reverse,   FTL_PARAM_head_order, FTL_PARAM_tile_strip,
                                    FTL_PARAM_tile_scheduler, FTL_PARAM_l2_persist, FTL_PARAM_l2_evict_first,
                                    FTL_PARAM_code,           FTL_PARAM_scaling,    FTL_PARAM_row_sums,
                                    FTL_PARAM_guard,          FTL_PARAM_exp2,       FTL_PARAM_mask_steps,
                                    FTL_PARAM_max_registers,  FTL_PARAM_min_ctas,   FTL_PARAM_detail};
enum { NUM_CHOICES = sizeof choices / sizeof *choices, NUM_ALWAYS_SHOWN = 4 };

static bool is_choice(int param) {
  for (int i = 0; i < NUM_CHOICES; i++) {
    if ((int)choices[i] == param) return true;
  }
  return false;
}

bool ftl_question_value(const char *question, const char *name, char *out, size_t size) {
  size_t length = strlen(name);
  for (const char *word = strchr(question, ' '); word != NULL; word = strchr(word, ' ')) {
    word++;
    if (strncmp(word, name, length) != 0 || word[length] != '=') continue;
    word += length + 1;
    snprintf(out, size, "%.*s", (int)strcspn(word, " "), word);
    return true;
  }
  return false;
}

// Of one workload; they are asked for tens of thousands of times.
typedef struct ftl_question_defaults {
  struct ftl_question_defaults *next;
  char workload[64], text[FTL_PARAM_COUNT][FTL_PARAM_TEXT_BYTES];
} ftl_question_defaults;

// Of a scenario's own kernel the defaults that every workload shares.
static void set_defaults(ftl_question_defaults *defaults) {
  const ftl_workload *workload = ftl_workload_find(defaults->workload);
  ftl_spec general = {0};
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    char *text = defaults->text[i];
    general.value[i] = ftl_param_get((ftl_param)i)->default_value;
    if (workload != NULL) {
      ftl_workload_default(workload, (ftl_param)i, text);
    } else if (ftl_param_is_of_shape((ftl_param)i)) {
      text[0] = '\0';
    } else {
      char buffer[32];
      snprintf(text, FTL_PARAM_TEXT_BYTES, "%s", ftl_spec_text(&general, (ftl_param)i, buffer));
    }
  }
}

// NULL when memory is out.
static const ftl_question_defaults *defaults_of(ftl_page *page, const char *question) {
  ftl_question_defaults *found = page->defaults;
  size_t length = strcspn(question, " "), most = sizeof found->workload - 1;
  if (length > most) length = most;
  while (found != NULL && (strncmp(found->workload, question, length) != 0 || found->workload[length] != '\0')) {
    found = found->next;
  }
  if (found != NULL) return found;
  found = FTL_ARENA_NEW(&page->arena, ftl_question_defaults, 1);
  if (found == NULL) return NULL;
  memcpy(found->workload, question, length);
  set_defaults(found);
  found->next = page->defaults;
  page->defaults = found;
  return found;
}

// The words of one question.
typedef struct words {
  const char *value[FTL_PARAM_COUNT];  // up to the next space; NULL: not in it
} words;

static bool is_same(const char *a, const char *b) {
  size_t length = strcspn(a, " ");
  return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
}

static bool are_same(const words *w, ftl_param a, ftl_param b) {
  return w->value[a] != NULL && w->value[b] != NULL && is_same(w->value[a], w->value[b]);
}

// Lengths that are the same are one word, and so are heads of queries and keys, and the columns of keys and values;
// NULL: it says nothing new.
static const char *shown_name(const words *w, int param) {
  if (param == FTL_PARAM_kv_heads && are_same(w, FTL_PARAM_heads, FTL_PARAM_kv_heads)) return NULL;
  if (param == FTL_PARAM_head_dim_v && are_same(w, FTL_PARAM_head_dim, FTL_PARAM_head_dim_v)) return NULL;
  if (param == FTL_PARAM_seqlen_kv && are_same(w, FTL_PARAM_seqlen_q, FTL_PARAM_seqlen_kv)) return NULL;
  if (param == FTL_PARAM_seqlen_q && are_same(w, FTL_PARAM_seqlen_q, FTL_PARAM_seqlen_kv)) return "seqlen";
  return ftl_param_get((ftl_param)param)->name;
}

static void add_word(ftl_text *out, const char *name, const char *value) {
  ftl_text_add(out, "%s%s=%.*s", out->size > 0 ? " " : "", name, (int)strcspn(value, " "), value);
}

// What is no parameter is a kernel's own: a choice, but for the hash of its program.
static words read_words(const char *question, ftl_text *own) {
  words w = {{NULL}};
  for (const char *word = strchr(question, ' '); word != NULL; word = strchr(word, ' ')) {
    word++;
    char name[64];
    size_t length = strcspn(word, "= ");
    if (word[length] != '=' || length >= sizeof name) continue;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    int param = ftl_param_find(name);
    if (param >= 0) {
      w.value[param] = word + length + 1;
    } else if (strcmp(name, "program") != 0) {
      add_word(own, name, word + length + 1);
    }
  }
  return w;
}

ftl_status ftl_question_split(ftl_page *page, const char *question, ftl_text *problem, ftl_text *choice) {
  const ftl_question_defaults *defaults = defaults_of(page, question);
  if (defaults == NULL) return ftl_page_no_memory(page);
  words w = read_words(question, choice);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (w.value[i] == NULL || is_choice(i) || is_same(w.value[i], defaults->text[i])) continue;
    const char *name = shown_name(&w, i);
    if (name != NULL) add_word(problem, name, w.value[i]);
  }
  for (int i = 0; i < NUM_CHOICES; i++) {
    ftl_param param = choices[i];
    if (w.value[param] == NULL || (i >= NUM_ALWAYS_SHOWN && is_same(w.value[param], defaults->text[param]))) continue;
    add_word(choice, ftl_param_get(param)->name, w.value[param]);
  }
  return FTL_OK;
}
