#include "predict/predictor_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include "support/cache_folder.h"
#include "support/hash.h"
#include "support/json_error.h"
#include "support/log.h"
#include "support/write_file.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "tandem predictors ";
// Files that are JSON alone.
constexpr int kTextVersion = 1;

Status check_made_for(const char* what, const std::string& found, const std::string& expected,
                      bool allow_others) {
  if (found == expected) return {};
  const std::string message = fmt::format(
      "these predictors were trained for the {} '{}', and this is '{}'", what, found, expected);
  if (!allow_others) {
    return failed_precondition(message + ": run `tandem profile` and `tandem train`");
  }
  log().warn("{}: their times may be wrong", message);
  return {};
}

Status check_version(std::string_view name, int found, int known) {
  if (found == known) return {};
  return failed_precondition(
      fmt::format("the predictors' {} is {}, and this Tandem reads {}: run `tandem train`", name,
                  found, known));
}

Status damaged(std::string_view how) {
  return corrupt(
      fmt::format("the predictors' file is damaged ({}): run `tandem train` again", how));
}

// FNV-1a by words instead of bytes: files are megabytes, and this is part of every start.
uint64_t checksum_of(std::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325u;
  const auto mix = [&sum](uint64_t word) {
    sum = (sum ^ word) * 0x100000001b3u;
    sum ^= sum >> 32;  // upper bits of a word would never reach the lower ones of the sum
  };
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    mix(word);
  }
  for (const unsigned char c : bytes) mix(c);
  return sum;
}

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

// Takes the first line off.
std::string_view take_line(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

// Puts sections one behind the other, and says where they are.
class Sections {
 public:
  json add(std::string_view section) {
    const size_t begin = bytes_.size();
    bytes_ += section;
    return {begin, section.size()};
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

SharedText section_of(const SharedText& bytes, const json& place) {
  const size_t begin = place.at(0);
  const size_t length = place.at(1);
  SharedText section = bytes.part(begin, length);
  if (section.view().size() != length) throw std::invalid_argument("a model beyond its end");
  return section;
}

Status read_header(const json& document, const Fingerprints& expected, bool allow_others,
                   PredictorFile* file) {
  TANDEM_RETURN_IF_ERROR(
      check_version("slice_version", document.at("slice_version"), kSliceCaseVersion));
  file->made_for = {document.at("platform"), document.at("engine")};
  TANDEM_RETURN_IF_ERROR(
      check_made_for("platform", file->made_for.platform, expected.platform, allow_others));
  TANDEM_RETURN_IF_ERROR(
      check_made_for("engine", file->made_for.engine, expected.engine, allow_others));
  document.at("trained").get_to(file->trained);
  return {};
}

// `model_of`: SharedText(json), of what stands in the document for a model.
template <typename ModelOf>
Status read_lanes(const json& lanes, const ModelOf& model_of, PredictorFile* file) {
  for (const auto& [name, value] : lanes.items()) {
    LanePredictorTexts& lane = file->lanes[name];
    TANDEM_ASSIGN_OR_RETURN(lane.facts, parse_lane_facts(value.at("facts")));
    value.at("memory_gbps").get_to(lane.memory_gbps);
    if (!(lane.memory_gbps >= 0) || !std::isfinite(lane.memory_gbps)) {
      return damaged("memory_gbps of lane " + name);
    }
    for (const auto& [model, text] : value.at("models").items()) {
      lane.models[model] = model_of(text);
    }
  }
  return {};
}

StatusOr<PredictorFile> parse_text_version(std::string_view text, const Fingerprints& expected,
                                           bool allow_others) {
  const json document = json::parse(text);
  TANDEM_RETURN_IF_ERROR(
      check_version("schema_version", document.at("schema_version"), kTextVersion));
  PredictorFile file;
  TANDEM_RETURN_IF_ERROR(read_header(document, expected, allow_others, &file));
  document.at("errors").get_to(file.errors);
  TANDEM_RETURN_IF_ERROR(read_lanes(
      document.at("lanes"), [](const json& model) { return SharedText(model.get<std::string>()); },
      &file));
  return file;
}

StatusOr<PredictorFile> parse_packed(const SharedText& text, const Fingerprints& expected,
                                     bool allow_others) {
  std::string_view rest = text.view();
  const std::string_view first = take_line(&rest);
  const std::string_view header = take_line(&rest);
  const std::string known = fmt::format("{}{} ", kMagic, PredictorFile::kSchemaVersion);
  if (!first.starts_with(known)) {
    const std::string_view version = first.substr(kMagic.size());
    return failed_precondition(
        fmt::format("the predictors' file has version {}, and this Tandem reads {}: run `tandem "
                    "train`",
                    version.substr(0, version.find(' ')), PredictorFile::kSchemaVersion));
  }
  if (first.substr(known.size()) != hex(hash_of(header))) {
    return damaged("its second line is not the one that was written");
  }
  const json document = json::parse(header);
  PredictorFile file;
  TANDEM_RETURN_IF_ERROR(read_header(document, expected, allow_others, &file));
  if (const size_t bytes = document.at("bytes"); bytes != rest.size()) {
    return damaged(fmt::format("{} bytes of models where there should be {}", rest.size(), bytes));
  }
  if (document.at("checksum") != hex(checksum_of(rest))) {
    return damaged("its models are not those that were written");
  }
  const SharedText bytes = text.part(text.view().size() - rest.size(), rest.size());
  file.errors = section_of(bytes, document.at("errors")).view();
  TANDEM_RETURN_IF_ERROR(read_lanes(
      document.at("lanes"), [&bytes](const json& place) { return section_of(bytes, place); },
      &file));
  return file;
}

StatusOr<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument(path + " is a folder; give a file of predictors");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return not_found(fmt::format(
        "there are no predictors in {}: run `tandem profile` and `tandem train`", path));
  }
  // Files say how long they are, pipes do not.
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  constexpr size_t kChunk = 1 << 20;
  size_t chunk = error ? kChunk : static_cast<size_t>(bytes) + 1;
  std::string text;
  for (size_t size = 0; file; chunk = kChunk) {
    text.resize(size + chunk);
    file.read(text.data() + size, static_cast<std::streamsize>(chunk));
    size += static_cast<size_t>(file.gcount());
    if (!file) text.resize(size);
  }
  return text;
}

}  // namespace

std::string PredictorFile::to_text() const {
  Sections sections;
  json all = json::object();
  for (const auto& [name, lane] : lanes) {
    json models = json::object();
    for (const auto& [model, text] : lane.models) models[model] = sections.add(text.view());
    all[name] = {
        {"facts", to_json(lane.facts)}, {"memory_gbps", lane.memory_gbps}, {"models", models}};
  }
  json document = {{"slice_version", kSliceCaseVersion},
                   {"platform", made_for.platform},
                   {"engine", made_for.engine},
                   {"trained", trained},
                   {"lanes", all}};
  document["errors"] = sections.add(errors);
  document["bytes"] = sections.bytes().size();
  document["checksum"] = hex(checksum_of(sections.bytes()));
  const std::string header = document.dump();
  return fmt::format("{}{} {}\n{}\n", kMagic, kSchemaVersion, hex(hash_of(header)), header) +
         sections.bytes();
}

StatusOr<PredictorFile> PredictorFile::parse(SharedText text, const Fingerprints& expected,
                                             bool allow_other_fingerprints) {
  try {
    return text.view().starts_with(kMagic)
               ? parse_packed(text, expected, allow_other_fingerprints)
               : parse_text_version(text.view(), expected, allow_other_fingerprints);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory left for the predictors");
  } catch (const std::exception& e) {
    return damaged(json_problem(e.what()));
  }
}

StatusOr<PredictorFile> PredictorFile::load(const std::string& path, const Fingerprints& expected,
                                            bool allow_other_fingerprints) {
  try {
    TANDEM_ASSIGN_OR_RETURN(std::string text, read_file(path));
    StatusOr<PredictorFile> parsed = parse(std::move(text), expected, allow_other_fingerprints);
    if (!parsed.ok()) return parsed.status().with_context(path);
    return parsed;
  } catch (const std::bad_alloc&) {
    return resource_exhausted(fmt::format("no memory left for the predictors in {}", path));
  }
}

Status PredictorFile::save(const std::string& path) const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    return invalid_argument(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  return write_file(path, to_text());
}

namespace {

std::string default_path(const std::string& platform, const char* extension) {
  const std::string folder = default_data_folder("predictors");
  return folder == "none" ? folder
                          : fmt::format("{}/{:016x}.{}", folder, hash_of(platform), extension);
}

}  // namespace

std::string default_predictor_path(const std::string& platform) {
  return default_path(platform, "predictors");
}

std::string find_default_predictors(const std::string& platform) {
  std::string now = default_path(platform, "predictors");
  std::string before = default_path(platform, "json");
  std::error_code error;
  const bool only_before =
      !std::filesystem::exists(now, error) && std::filesystem::exists(before, error);
  return only_before ? before : now;
}

}  // namespace tandem::predict
