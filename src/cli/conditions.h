// Under which conditions something was measured: printed with every figure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tandem/platform.h"

namespace tandem::cli {

// Watches the machine from its construction on.
class Conditions {
 public:
  Conditions();
  // With what has changed since: the share of time that a hypervisor gave to others, the load.
  nlohmann::json to_json(const Platform& platform) const;
  // The same for people, one line a fact.
  std::string to_text(const Platform& platform) const;

 private:
  uint64_t total_ticks_ = 0;
  uint64_t stolen_ticks_ = 0;
};

// Versions of Tandem and of what it is built on, by name.
nlohmann::json library_versions();

}  // namespace tandem::cli
