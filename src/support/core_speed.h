// How fast the core of the calling thread is at this moment, independent of any kernel.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace tandem {

// GFLOPS of f32 multiply-adds held in registers: the best of some rounds, of half a millisecond
// each on a core of 100 GFLOPS.
double multiply_add_gflops(int rounds);

// What is read to see how fast memory is.
class SpeedMemory {
 public:
  explicit SpeedMemory(size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes))) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
  }
  // A multiple of 4096.
  size_t bytes() const { return bytes_; }
  const std::byte* data() const { return data_.get(); }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };

  size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

// Gigabytes per second of reading all of it: the best of some rounds.
double read_gigabytes_per_second(const SpeedMemory& memory, int rounds);

}  // namespace tandem
