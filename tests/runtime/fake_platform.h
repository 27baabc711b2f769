// A platform of fake lanes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/platform.h"
#include "tests/runtime/fake_lane.h"
#include "tests/runtime/fake_queue_lane.h"

namespace tandem::testing {

// One CPU lane "cpu0" and one queue lane "gpu0", or only the former.
class FakePlatform : public Platform {
 public:
  explicit FakePlatform(bool with_queue = true) {
    lanes_.push_back(std::make_unique<FakeCpuLane>("cpu0"));
    if (with_queue) {
      lanes_.push_back(std::make_unique<FakeQueueLane>("gpu0"));
    } else {
      warnings_.push_back("no OpenCL lane: there is no device");
    }
  }
  const std::vector<std::unique_ptr<Lane>>& lanes() const override { return lanes_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string fingerprint() const override { return "fake platform"; }
  FakeCpuLane& cpu() { return static_cast<FakeCpuLane&>(*lanes_[0]); }
  FakeQueueLane& queue() { return static_cast<FakeQueueLane&>(*lanes_[1]); }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> warnings_;
};

}  // namespace tandem::testing
