/* The parameters of a case, in the order in which `list` prints them. */
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace independent {

class Json {
 public:
  Json &text(const char *key, const char *value) { return raw(key, "\"" + std::string(value) + "\""); }
  Json &number(const char *key, int value) { return raw(key, std::to_string(value)); }
  Json &flag(const char *key, bool value) { return raw(key, value ? "true" : "false"); }

  Json &sizes(int batch, int heads, int kv_heads, int seqlen_q, int seqlen_kv) {
    number("batch", batch).number("heads", heads).number("kv_heads", kv_heads);
    return number("seqlen_q", seqlen_q).number("seqlen_kv", seqlen_kv);
  }
  Json &blocks(int block_m, int block_n) { return number("block_m", block_m).number("block_n", block_n); }
  Json &warps(int num_warps, int num_stages) { return number("num_warps", num_warps).number("num_stages", num_stages); }

  std::string joined(const char *separator) const {
    std::string all;
    for (const auto &field : fields_)
      all += (all.empty() ? "\"" : std::string(separator) + "\"") + field.first + "\":" + field.second;
    return all;
  }

 private:
  Json &raw(const char *key, std::string value) {
    fields_.emplace_back(key, std::move(value));
    return *this;
  }
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace independent
