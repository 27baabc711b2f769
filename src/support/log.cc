#include "support/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tandem {

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    std::shared_ptr<spdlog::logger> made = spdlog::get("tandem");
    if (!made) {
      made = spdlog::stderr_color_mt("tandem");
      made->set_pattern("%^%l%$: %v");
    }
    return made;
  }();
  return *logger;
}

}  // namespace tandem
