// A hash for names of files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

// FNV-1a: the same on every machine, unlike std::hash.
inline uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

}  // namespace tandem
