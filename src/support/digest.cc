#include "support/digest.h"

#include <fmt/format.h>

#include <cstdint>

namespace tandem {

// FNV-1a, from two starting points.
std::string digest(std::string_view text) {
  uint64_t a = 0xcbf29ce484222325u;
  uint64_t b = 0x9ae16a3b2f90404fu;
  for (const char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

}  // namespace tandem
