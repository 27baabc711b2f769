#include "cli/conditions.h"

#include <hwloc.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/utsname.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fmt/chrono.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/lane.h"
#include "platform/topology.h"
#include "tandem/version.h"

namespace tandem::cli {
namespace {

// The machine's processor ticks since it started: all of them, and those that a hypervisor gave to
// other machines.
struct Ticks {
  uint64_t total = 0;
  uint64_t stolen = 0;
};

Ticks read_ticks() {
  std::ifstream file("/proc/stat");
  std::string label;
  file >> label;
  Ticks ticks;
  constexpr int kFields = 8;  // user nice system idle iowait irq softirq steal
  for (int i = 0; i < kFields; ++i) {
    uint64_t value = 0;
    file >> value;
    ticks.total += value;
    if (i == kFields - 1) ticks.stolen = value;
  }
  return ticks;
}

// Of every logical processor at this moment, in MHz; empty where the kernel does not say.
std::vector<double> read_clocks() {
  std::ifstream file("/proc/cpuinfo");
  std::vector<double> clocks;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    clocks.push_back(std::atof(line.c_str() + line.find(':') + 1));
  }
  return clocks;
}

std::string read_governor() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string governor;
  return file >> governor ? governor : "not visible";
}

double read_load() {
  std::array<double, 1> load{};
  return getloadavg(load.data(), 1) == 1 ? load[0] : 0;
}

std::string now() {
  return fmt::format(
      "{:%Y-%m-%d %H:%M:%S} UTC",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace

nlohmann::json library_versions() {
  const dnnl_version_t* dnnl = dnnl_version();
  const unsigned hwloc = hwloc_get_api_version();
  utsname kernel{};
  uname(&kernel);
  return {{"tandem", kVersion},
          {"oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
          {"hwloc API", fmt::format("{}.{}.{}", hwloc >> 16, hwloc >> 8 & 0xff, hwloc & 0xff)},
          {"compiler", __VERSION__},
          {"kernel", kernel.release}};
}

Conditions::Conditions() {
  const Ticks ticks = read_ticks();
  total_ticks_ = ticks.total;
  stolen_ticks_ = ticks.stolen;
}

nlohmann::json Conditions::to_json(const Platform& platform) const {
  const Ticks ticks = read_ticks();
  const uint64_t total = ticks.total - total_ticks_;
  const double stolen = total == 0 ? 0
                                   : 100 * static_cast<double>(ticks.stolen - stolen_ticks_) /
                                         static_cast<double>(total);
  const StatusOr<Topology> topology = detect_topology();
  nlohmann::json lanes = nlohmann::json::array();
  for (const auto& lane : platform.lanes()) {
    lanes.push_back({{"name", lane->info().name},
                     {"cores", lane->info().cores},
                     {"description", lane->info().description}});
  }
  return {{"date", now()},
          {"cpu", topology.ok() ? topology->cpu_model : "unknown"},
          {"processors", topology.ok() ? topology->processors : 0},
          {"clocks_mhz", read_clocks()},
          {"governor", read_governor()},
          {"load_average", read_load()},
          {"stolen_percent", stolen},
          {"lanes", lanes},
          {"versions", library_versions()}};
}

std::string Conditions::to_text(const Platform& platform) const {
  const nlohmann::json facts = to_json(platform);
  std::string text = fmt::format(
      "conditions: {}, {}, {} processors at {:.0f} MHz (governor {}), load {:.2f}, {:.1f}% stolen "
      "by the hypervisor\n",
      facts["date"].get<std::string>(), facts["cpu"].get<std::string>(),
      facts["processors"].get<int>(),
      fmt::join(facts["clocks_mhz"].get<std::vector<double>>(), "/"),
      facts["governor"].get<std::string>(), facts["load_average"].get<double>(),
      facts["stolen_percent"].get<double>());
  for (const auto& lane : platform.lanes()) {
    text += fmt::format(
        "  lane {} on cores {}: {}\n", lane->info().name,
        lane->info().cores.empty() ? "of its own" : to_processor_list(lane->info().cores),
        lane->info().description);
  }
  text += " ";
  for (const auto& [library, version] : facts["versions"].items()) {
    text += fmt::format(" {} {};", library, version.get<std::string>());
  }
  text.back() = '\n';
  return text;
}

}  // namespace tandem::cli
