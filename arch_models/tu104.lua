-- TU104 (Turing): the die of T4. Nothing was measured on it: what TU102 has is taken.
return die "tu104" : on "tu102" {
  chip = {
    num_gpcs = guess(6, "TU104 has 6 GPCs of 4 TPCs of 2 SMs, from memory"),
  },
  clock = {
    l2_khz = guess(1590000, "no figure found; taken as the SM's boost clock"),
  },
  power = {
    static_mw = guess(16000, "idle with GDDR6 and leakage at load; not measured"),
    sm_cycle_fj = guess(460000, "chosen so that dense HMMA at 70 W holds about 0.95 GHz; not measured"),
    tensor_mac_fj = guess(1900, "chosen so that dense HMMA at 70 W holds about 0.95 GHz; not measured"),
  },
}
