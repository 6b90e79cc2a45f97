/* A case with its tensors on the device, which it frees. Outputs start as NaN, so that what is not written shows. */
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "json.h"
#include "random_normal.h"

namespace independent {

class Problem {
 public:
  Problem() = default;
  Problem(const Problem &) = delete;
  virtual ~Problem() {
    for (void *p : memory_) cudaFree(p);
  }
  virtual void prepare() {} /* before each launch; not timed */
  virtual void launch() = 0;
  virtual bool check(std::string &report) = 0; /* after a launch; appends the errors */

 protected:
  template <class T>
  T *alloc(size_t count) {
    void *p = nullptr;
    CUDA_CHECK(cudaMalloc(&p, count * sizeof(T)));
    memory_.push_back(p);
    CUDA_CHECK(cudaMemset(p, 0xff, count * sizeof(T)));
    return (T *)p;
  }
  template <class T>
  T *normal(size_t count, uint64_t seed) {
    T *p = alloc<T>(count);
    fill_normal(p, count, seed);
    return p;
  }
  /* Of a format that is known at run time. */
  void *alloc16(size_t count) { return alloc<uint16_t>(count); }
  void *normal16(size_t count, bool bf16, uint64_t seed) {
    return bf16 ? (void *)normal<__nv_bfloat16>(count, seed) : (void *)normal<__half>(count, seed);
  }

 private:
  std::vector<void *> memory_;
};

typedef std::function<std::unique_ptr<Problem>()> MakeProblem;

struct Case {
  Json parameters;
  MakeProblem make;
};
struct Check {
  std::string name;
  MakeProblem make;
};

/* Cases that are to be checked, named by their parameters. */
inline std::vector<Check> checks_of(const std::vector<Case> &cases) {
  std::vector<Check> all;
  for (const Case &c : cases) all.push_back({c.parameters.joined(","), c.make});
  return all;
}

template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace independent
