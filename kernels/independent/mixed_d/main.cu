/* Family mixed_d: FlashAttention-2 forward, products and split-KV decoding with mma.sync and cp.async. */
#include "commands.h"
#include "problems.h"

namespace mixed_d {

typedef __half H;
typedef __nv_bfloat16 B;

typedef ForwardTile<H, 64, 64, 64, 4, 2> Forward64A;
typedef ForwardTile<B, 64, 128, 64, 4, 2> Forward64B;
typedef ForwardTile<B, 64, 64, 128, 4, 2> Forward64C;
typedef ForwardTile<H, 64, 128, 32, 4, 3> Forward64D;
typedef ForwardTile<H, 128, 64, 64, 4, 2> Forward128A;
typedef ForwardTile<B, 128, 128, 64, 8, 2> Forward128B;
typedef ForwardTile<H, 128, 128, 32, 4, 3> Forward128C;
typedef ForwardTile<B, 128, 64, 32, 4, 3> Forward128D;
typedef ForwardTile<H, 128, 64, 128, 4, 2> Forward128E;

typedef ProductTile<128, 128, 32, 2, 4, 3> ProductA;
typedef ProductTile<128, 64, 32, 2, 2, 4> ProductB;
typedef ProductTile<64, 64, 64, 2, 2, 3> ProductC;

typedef DecodeTile<H, 64, 4, 3> DecodeA;
typedef DecodeTile<B, 128, 8, 2> DecodeB;

constexpr bool causal = true, full = false, in_bshd = true, in_bhsd = false, head_first = true, n_first = true;

std::vector<Case> cases() {
  return {
      forward_case<Forward64A>({4, 16, 16, 2048, 2048, full, in_bhsd}),
      forward_case<Forward64A>({8, 12, 12, 1536, 1536, causal, in_bshd}),
      forward_case<Forward64B>({2, 16, 4, 4096, 4096, causal, in_bshd}),
      forward_case<Forward64B>({8, 12, 12, 1152, 1152, full, in_bshd}),
      forward_case<Forward64C>({3, 20, 20, 1920, 1920, full, in_bhsd}),
      forward_case<Forward64D>({4, 24, 8, 1664, 1664, causal, in_bhsd, head_first}),
      forward_case<Forward128A>({2, 32, 8, 2048, 2048, causal, in_bhsd}),
      forward_case<Forward128A>({1, 40, 40, 3136, 3136, full, in_bshd}),
      forward_case<Forward128B>({4, 32, 8, 2048, 2048, causal, in_bshd}),
      forward_case<Forward128B>({1, 28, 4, 5120, 5120, full, in_bhsd}),
      forward_case<Forward128C>({2, 16, 16, 2560, 2560, full, in_bhsd}),
      forward_case<Forward128D>({6, 32, 4, 1088, 1088, causal, in_bshd, head_first}),
      forward_case<Forward128E>({1, 64, 8, 2304, 2304, causal, in_bhsd}),
      forward_case<Forward128E>({2, 16, 2, 512, 4096, causal, in_bshd}),
      product_case<ProductA>({1, 4096, 4096, 4096}),
      product_case<ProductA>({1, 2304, 5120, 1280, n_first}),
      product_case<ProductB>({1, 2048, 2880, 2880, n_first}),
      product_case<ProductB>({48, 1024, 1024, 128}),
      product_case<ProductC>({1, 192, 12288, 4096}),
      product_case<ProductC>({64, 512, 1536, 64, n_first}),
      decode_case<DecodeA>({16, 32, 8, 4096, 4, in_bhsd}),
      decode_case<DecodeA>({1, 64, 8, 65536, 32, in_bshd}),
      decode_case<DecodeB>({32, 28, 4, 3072, 3, in_bshd}),
      decode_case<DecodeB>({8, 32, 2, 24576, 8, in_bhsd}),
  };
}

/* More tiles than stages and fewer, grouped heads, both layouts and orders, and rows that see no key. */
template <class Tile>
void add_forward(std::vector<Case> &to) {
  to.push_back(forward_case<Tile>({2, 4, 4, 256, 640, full, in_bhsd}));
  to.push_back(forward_case<Tile>({2, 6, 2, 384, 384, causal, in_bshd, head_first}));
  to.push_back(forward_case<Tile>({1, 4, 2, 128, 512, causal, in_bshd}));
  to.push_back(forward_case<Tile>({1, 2, 1, 384, 128, causal, in_bhsd}));
}
template <class Tile>
void add_product(std::vector<Case> &to) {
  to.push_back(product_case<Tile>({1, 256, 384, 576}));
  to.push_back(product_case<Tile>({3, 384, 256, 64, n_first}));
}
template <class Tile>
void add_decode(std::vector<Case> &to) {
  to.push_back(decode_case<Tile>({2, 8, 2, 1024, 3, in_bhsd}));
  to.push_back(decode_case<Tile>({3, 14, 1, 640, 5, in_bshd}));
  to.push_back(decode_case<Tile>({1, 32, 2, 5120, 40, in_bhsd}));
}

std::vector<Case> small_cases() {
  std::vector<Case> all;
  add_forward<Forward64A>(all), add_forward<Forward64B>(all), add_forward<Forward64C>(all);
  add_forward<Forward64D>(all), add_forward<Forward128A>(all), add_forward<Forward128B>(all);
  add_forward<Forward128C>(all), add_forward<Forward128D>(all), add_forward<Forward128E>(all);
  add_product<ProductA>(all), add_product<ProductB>(all), add_product<ProductC>(all);
  add_decode<DecodeA>(all), add_decode<DecodeB>(all);
  return all;
}

}  // namespace mixed_d

int main(int argc, char **argv) {
  return independent::Commands(mixed_d::cases(), independent::checks_of(mixed_d::small_cases())).run(argc, argv);
}
