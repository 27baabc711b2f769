// The team size that libraries with their own parallel regions use.
#pragma once

#include <omp.h>

namespace tandem::cpu {

// Sets it for the calling thread, until the end of the scope.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

}  // namespace tandem::cpu
