// Whether the machine is as fast as it can be while something is measured.
#pragma once

#include <memory>
#include <vector>

#include "support/core_speed.h"

namespace tandem {

// Of the slowest core while all of them work.
struct MachineSpeed {
  double gflops = 0;
  double gigabytes_per_second = 0;
};

class MachineWatch {
 public:
  // Watches these logical processors; none: nothing is watched, and nothing ever disturbed.
  explicit MachineWatch(std::vector<int> cores);

  // Takes some 10 ms on all of the cores at once.
  MachineSpeed look();
  // The machine was slower than it has been seen at best: another machine, or process, has some of
  // it. The best is that of all looks, and what remember() said.
  bool is_disturbed(const MachineSpeed& speed) const;
  void remember(const MachineSpeed& speed);

 private:
  const std::vector<int> cores_;
  std::unique_ptr<SpeedMemory> memory_;
  MachineSpeed best_;
};

}  // namespace tandem
