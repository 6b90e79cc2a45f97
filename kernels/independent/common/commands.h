/* The four commands of a family's program: list, check, profile, time (README.md). A case that fails says so on stderr
 * and the others go on. */
#pragma once

#include <cstdio>

#include <cuda_profiler_api.h>

#include "timing.h"

namespace independent {

/* In what the families differ. */
struct Habits {
  const char *separator = ","; /* of the fields of `list` */
  int warm_up_runs = 3, us_digits = 3;
  bool failures_as_json = false; /* by `profile` and `time`, on stdout too */
  int status_of_failures = 1;    /* exit status of `profile` and `time` after a case that failed */
};

class Commands {
 public:
  Commands(std::vector<Case> cases, std::vector<Check> checks, Habits habits = {})
      : cases_(std::move(cases)), checks_(std::move(checks)), habits_(habits) {}

  /* The exit status. */
  int run(int argc, char **argv) {
    std::string command = argc > 1 ? argv[1] : "";
    try {
      if (command == "list") return list();
      if (command == "check") return check();
      if (command == "profile") return profile();
      if (command == "time") return time();
    } catch (const std::exception &e) {
      fprintf(stderr, "%s\n", e.what());
      return 1;
    }
    fprintf(stderr, "usage: %s list|check|profile|time\n", argv[0]);
    return 2;
  }

 private:
  int list() const {
    for (size_t i = 0; i < cases_.size(); i++)
      printf("{\"case\":%zu%s%s}\n", i, habits_.separator, cases_[i].parameters.joined(habits_.separator).c_str());
    return 0;
  }

  static bool check_one(const Check &check) {
    std::string report;
    bool ok = false;
    try {
      auto problem = check.make();
      problem->prepare();
      problem->launch();
      CUDA_CHECK(cudaDeviceSynchronize());
      ok = problem->check(report);
    } catch (const std::exception &e) {
      report += std::string(" ") + e.what();
      cudaGetLastError();
    }
    printf("%s:%s %s\n", check.name.c_str(), report.c_str(), ok ? "ok" : "FAIL");
    fflush(stdout);
    return ok;
  }
  int check() const {
    int failed = 0;
    for (const Check &check : checks_) failed += !check_one(check);
    printf("%d of %zu failed\n", failed, checks_.size());
    return failed != 0;
  }

  /* `action` with every case, made anew and freed behind it. */
  template <class Action>
  int for_each_case(Action action) const {
    bool failed = false;
    for (size_t i = 0; i < cases_.size(); i++) {
      try {
        auto problem = cases_[i].make();
        CUDA_CHECK(cudaDeviceSynchronize());
        action(i, *problem);
      } catch (const std::exception &e) {
        fprintf(stderr, "case %zu failed: %s\n", i, e.what());
        if (habits_.failures_as_json) printf("{\"case\":%zu,\"error\":\"%s\"}\n", i, e.what());
        cudaGetLastError();
        failed = true;
      }
    }
    return failed ? habits_.status_of_failures : 0;
  }

  /* The launches of a case are all that a profiler started with `--profile-from-start off` sees. */
  int profile() const {
    return for_each_case([](size_t, Problem &problem) {
      problem.prepare();
      CUDA_CHECK(cudaDeviceSynchronize());
      CUDA_CHECK(cudaProfilerStart());
      std::string why;
      try {
        problem.launch();
        CUDA_CHECK(cudaDeviceSynchronize());
      } catch (const std::exception &e) {
        why = e.what();
      }
      cudaProfilerStop();
      if (!why.empty()) throw std::runtime_error(why);
    });
  }

  int time() const {
    L2Flush flush;
    EventTimer timer;
    return for_each_case([&](size_t i, Problem &problem) {
      float us = median_us(problem, flush, timer, habits_.warm_up_runs);
      printf("{\"case\":%zu,\"us\":%.*f}\n", i, habits_.us_digits, us);
      fflush(stdout);
    });
  }

  std::vector<Case> cases_;
  std::vector<Check> checks_;
  Habits habits_;
};

}  // namespace independent
