// A workload that is not in the list: a tile program that a user wrote, with parameters of its own.
//
// Whoever builds the program does so before any prediction, once for each choice of its parameters; what is left for a
// prediction are the parameters that say how a program runs (copy, mma, conditions, ...). Its identity is the hash of
// the program, so that stored results are found again only by the same program.
#ifndef FTL_WORKLOADS_USER_KERNEL_H
#define FTL_WORKLOADS_USER_KERNEL_H

#include "workloads/spec.h"

enum { FTL_OWN_PARAM_BYTES = 32, FTL_MAX_OWN_PARAMS = 32 };

typedef enum ftl_own_kind { FTL_OWN_NUMBER, FTL_OWN_BOOL, FTL_OWN_NAME } ftl_own_kind;

// block_m=128: a number, true or false, or a name of letters, digits and _ . + -
typedef struct ftl_own_param {
  char name[FTL_OWN_PARAM_BYTES], text[FTL_OWN_PARAM_BYTES];
  ftl_own_kind kind;
  double number;  // of FTL_OWN_NUMBER
} ftl_own_param;

typedef struct ftl_user_kernel {
  ftl_workload workload;  // what a spec of this kernel points at; refers back to the kernel
  char name[FTL_TILE_NAME_BYTES];
  int num_params;
  ftl_own_param params[FTL_MAX_OWN_PARAMS];  // in the order of their names
  const ftl_tile_program *program;           // borrowed; NULL: infeasible whatever the GPU, for this reason:
  char reason[FTL_ERROR_MESSAGE_BYTES];
  uint64_t identity;  // hash of the program, or of the reason
} ftl_user_kernel;

// Whether a user may call a kernel so: a short identifier that no workload of the list has. FTL_BAD_INPUT.
FTL_MUST_USE ftl_status ftl_user_kernel_check_name(const char *name, ftl_error *error);
// Whether a kernel may have a parameter of this name: a short identifier that is none of those that every kernel takes.
FTL_MUST_USE ftl_status ftl_user_kernel_check_param(const char *name, ftl_error *error);
// Parameters that say how any program runs: those of the list that a user's kernel takes.
ftl_param_set ftl_user_kernel_accepts(void);

// Completes a kernel whose name, parameters and program or reason are set. It must not move afterwards.
void ftl_user_kernel_finish(ftl_user_kernel *kernel);
// An unset spec of it.
ftl_spec ftl_user_kernel_spec(const ftl_user_kernel *kernel);

int ftl_user_kernel_find_param(const ftl_user_kernel *kernel, const char *name);  // -1: none
// "block_m=128 block_n=64", nothing before or behind.
void ftl_user_kernel_write_params(const ftl_user_kernel *kernel, ftl_text *out);

#endif
