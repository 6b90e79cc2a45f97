/* Reads clocks, power and temperature through libnvidia-ml (opened at run time); never sets anything. Values are -1
 * where it is absent. */
#pragma once

#include <dlfcn.h>

class Nvml {
 public:
  Nvml() {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return;
    auto init = (int (*)())dlsym(library, "nvmlInit_v2");
    auto by_index = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    clock_ = (int (*)(void *, int, unsigned *))dlsym(library, "nvmlDeviceGetClockInfo");
    power_ = (int (*)(void *, unsigned *))dlsym(library, "nvmlDeviceGetPowerUsage");
    temperature_ = (int (*)(void *, int, unsigned *))dlsym(library, "nvmlDeviceGetTemperature");
    if (!init || !by_index || init() != 0 || by_index(0, &device_) != 0) device_ = nullptr;
  }
  int sm_mhz() const { return read(clock_, 1); }
  int memory_mhz() const { return read(clock_, 2); }
  int celsius() const { return read(temperature_, 0); }
  double watts() const {
    unsigned milliwatts;
    return device_ && power_ && power_(device_, &milliwatts) == 0 ? milliwatts * 1e-3 : -1;
  }

 private:
  int read(int (*get)(void *, int, unsigned *), int which) const {
    unsigned value;
    return device_ && get && get(device_, which, &value) == 0 ? (int)value : -1;
  }
  void *device_ = nullptr;
  int (*clock_)(void *, int, unsigned *) = nullptr;
  int (*power_)(void *, unsigned *) = nullptr;
  int (*temperature_)(void *, int, unsigned *) = nullptr;
};
