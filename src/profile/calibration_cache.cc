#include "profile/calibration_cache.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/cache_folder.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/write_file.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr int kVersion = 4;

std::string to_text(SliceSize size) {
  return size.axis < 0 ? "whole" : fmt::format("{}:{}", size.axis, size.size);
}

SliceSize parse_size(const std::string& text) {
  if (text == "whole") return {};
  SliceSize size;
  const char* end = text.data() + text.size();
  const auto axis = std::from_chars(text.data(), end, size.axis);
  const bool separated = axis.ec == std::errc() && axis.ptr != end && *axis.ptr == ':';
  if (!separated || std::from_chars(axis.ptr + 1, end, size.size).ptr != end || size.axis < 0 ||
      size.size <= 0) {
    throw std::invalid_argument("it is damaged: bad slice " + text);
  }
  return size;
}

double parse_time(const json& value) {
  const auto us = value.get<double>();
  if (!std::isfinite(us) || us <= 0) throw std::invalid_argument("it is damaged: bad time");
  return us;
}

CopyTimes parse_copy(const json& value) {
  CopyTimes copy{value.at("base"), value.at("per_piece"), value.at("per_byte")};
  for (const double us : {copy.base, copy.per_piece, copy.per_byte}) {
    if (!std::isfinite(us) || us < 0) throw std::invalid_argument("it is damaged: bad copy time");
  }
  return copy;
}

LaneSlowdowns parse_slowdowns(const json& value) {
  const LaneSlowdowns slowdowns{value.at("memory_beside_memory"), value.at("memory_beside_compute"),
                                value.at("compute_beside_memory"),
                                value.at("compute_beside_compute"), value.at("bytes_per_us")};
  for (const double factor : {slowdowns.memory_beside_memory, slowdowns.memory_beside_compute,
                              slowdowns.compute_beside_memory, slowdowns.compute_beside_compute}) {
    if (!std::isfinite(factor) || factor < 1) {
      throw std::invalid_argument("it is damaged: bad slowdown");
    }
  }
  if (!std::isfinite(slowdowns.bytes_per_us) || slowdowns.bytes_per_us < 0) {
    throw std::invalid_argument("it is damaged: bad rate of memory");
  }
  return slowdowns;
}

json to_json(const CalibrationData& data, const std::string& fingerprint) {
  json slices = json::object();
  for (const auto& [signature, lanes] : data.slices) {
    for (const auto& [lane, sizes] : lanes) {
      for (const auto& [size, us] : sizes) slices[signature][lane][to_text(size)] = us;
    }
  }
  json copies = json::object();
  for (const auto& [lane, copy] : data.copies) {
    copies[lane] = {
        {"base", copy.base}, {"per_piece", copy.per_piece}, {"per_byte", copy.per_byte}};
  }
  json slowdowns = json::object();
  for (const auto& [lane, of] : data.slowdowns) {
    slowdowns[lane] = {{"memory_beside_memory", of.memory_beside_memory},
                       {"memory_beside_compute", of.memory_beside_compute},
                       {"compute_beside_memory", of.compute_beside_memory},
                       {"compute_beside_compute", of.compute_beside_compute},
                       {"bytes_per_us", of.bytes_per_us}};
  }
  return {{"version", kVersion},         {"fingerprint", fingerprint},    {"copies", copies},
          {"crossings", data.crossings}, {"enqueueing", data.enqueueing}, {"slices", slices},
          {"slowdowns", slowdowns}};
}

// Throws where the text is not what to_json() makes.
CalibrationData parse(const std::string& text, const std::string& fingerprint) {
  const json document = json::parse(text);
  if (document.at("version") != kVersion) throw std::invalid_argument("it is of another version");
  if (document.at("fingerprint") != fingerprint)
    throw std::invalid_argument("it was measured on other lanes or by another version of Tandem");
  CalibrationData data;
  for (const auto& [name, us] : document.at("crossings").items()) {
    data.crossings[name] = parse_time(us);
  }
  for (const auto& [name, us] : document.at("enqueueing").items()) {
    data.enqueueing[name] = parse_time(us);
  }
  for (const auto& [lane, copy] : document.at("copies").items()) {
    data.copies[lane] = parse_copy(copy);
  }
  for (const auto& [lane, slowdowns] : document.at("slowdowns").items()) {
    data.slowdowns[lane] = parse_slowdowns(slowdowns);
  }
  for (const auto& [signature, lanes] : document.at("slices").items()) {
    for (const auto& [lane, sizes] : lanes.items()) {
      for (const auto& [size, us] : sizes.items()) {
        data.slices[signature][lane][parse_size(size)] = parse_time(us);
      }
    }
  }
  return data;
}

}  // namespace

std::string crossing_key(const std::string& mechanism, const std::string& from,
                         const std::string& to) {
  return fmt::format("{} {}>{}", mechanism, from, to);
}

CalibrationCache::CalibrationCache(std::string dir, std::string fingerprint)
    : dir_(dir.empty() ? default_cache_folder("calibration") : std::move(dir)),
      fingerprint_(std::move(fingerprint)) {
  if (dir_ != "none") path_ = fmt::format("{}/{:016x}.json", dir_, hash_of(fingerprint_));
}

CalibrationData CalibrationCache::load() const {
  if (path_.empty()) return {};
  std::ifstream file(path_, std::ios::binary);
  if (!file) {
    std::error_code error;
    if (std::filesystem::exists(path_, error)) log().warn("cannot read {}", path_);
    return {};
  }
  std::string reason;
  try {
    return parse(std::string(std::istreambuf_iterator<char>(file), {}), fingerprint_);
  } catch (const json::exception&) {
    reason = "it is damaged";
  } catch (const std::exception& e) {
    reason = e.what();
  }
  // Saving reads it again.
  if (!std::exchange(warned_, true)) {
    log().warn("{} is not used, and will be replaced: {}", path_, reason);
  }
  return {};
}

void CalibrationCache::save(const CalibrationData& data) const {
  if (path_.empty()) return;
  // Other processes may have added theirs meanwhile.
  CalibrationData all = load();
  for (const auto& [signature, lanes] : data.slices) {
    for (const auto& [lane, sizes] : lanes) {
      for (const auto& [size, us] : sizes) all.slices[signature][lane][size] = us;
    }
  }
  for (const auto& [name, us] : data.crossings) all.crossings[name] = us;
  for (const auto& [name, us] : data.enqueueing) all.enqueueing[name] = us;
  for (const auto& [name, us] : data.copies) all.copies[name] = us;
  for (const auto& [name, of] : data.slowdowns) all.slowdowns[name] = of;
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  const Status written = write_file(path_, to_json(all, fingerprint_).dump(1));
  if (!written.ok()) {
    log().warn("measured times are not kept, and will be measured again: {}", written.message());
  }
}

}  // namespace tandem
