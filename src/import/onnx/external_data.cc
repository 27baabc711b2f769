#include "import/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// What a TensorProto says of its data.
struct Entry {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

StatusOr<int64_t> read_number(const onnx::StringStringEntryProto& entry) {
  const std::string& text = entry.value();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0) return number;
  return corrupt("its external data has the " + entry.key() + " '" + text + "'");
}

StatusOr<Entry> read_entry(const onnx::TensorProto& proto) {
  Entry result;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") result.location = entry.value();
    if (entry.key() == "offset") {
      TANDEM_ASSIGN_OR_RETURN(result.offset, read_number(entry));
    }
    if (entry.key() == "length") {
      TANDEM_ASSIGN_OR_RETURN(result.length, read_number(entry));
    }
  }
  if (result.location.empty()) return corrupt("its external data is in no file");
  return result;
}

std::string in_file(const std::string& location) { return "its file '" + location + "' "; }

// The file that the location names. Locations that could lead out of the folder are refused by
// their looks, links that do by where they lead.
StatusOr<std::string> resolve(const std::string& folder, const std::string& location) {
  const fs::path relative(location);
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (relative.is_absolute() || climbs || location.find('\0') != std::string::npos) {
    return corrupt(in_file(location) + "is outside the model's folder, which Tandem does not read");
  }
  std::error_code error;
  const fs::path inside = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return not_found("cannot open the model's folder " + folder + ": " + error.message());
  const fs::path path = fs::canonical(inside / relative, error);
  if (error) {
    return not_found(in_file(location) + "cannot be opened (" + error.message() +
                     "): it must lie beside the model, in " + inside.string());
  }
  if (std::mismatch(inside.begin(), inside.end(), path.begin(), path.end()).first != inside.end()) {
    return corrupt(in_file(location) +
                   "is a link that leads out of the model's folder, where Tandem does not follow: "
                   "copy it there");
  }
  return path.string();
}

}  // namespace

class ExternalData::File {
 public:
  File(std::string location, int descriptor, int64_t size)
      : location_(std::move(location)), descriptor_(descriptor), size_(size) {}
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& location() const { return location_; }
  int descriptor() const { return descriptor_; }
  int64_t size() const { return size_; }

  // Notes that the tensor has the bytes in [begin, end), which are not empty.
  Status claim(int64_t begin, int64_t end, const std::string& tensor) {
    const auto after = claims_.upper_bound(begin);
    if (after != claims_.begin()) {
      const auto& [other_begin, other] = *std::prev(after);
      if (other_begin == begin && other.end == end) return {};
      if (other.end > begin) return overlap(other.tensor);
    }
    if (after != claims_.end() && after->first < end) return overlap(after->second.tensor);
    claims_.emplace(begin, Claim{end, tensor});
    return {};
  }

 private:
  struct Claim {
    int64_t end = 0;
    std::string tensor;
  };

  Status overlap(const std::string& tensor) const {
    return corrupt("its bytes in the file '" + location_ + "' are in part those of tensor '" +
                   tensor + "'");
  }

  std::string location_;
  int descriptor_;
  int64_t size_;
  std::map<int64_t, Claim> claims_;  // by where they begin
};

ExternalData::ExternalData(std::optional<std::string> folder) : folder_(std::move(folder)) {}

ExternalData::~ExternalData() = default;

StatusOr<ExternalData::File*> ExternalData::open(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second.get();
  TANDEM_ASSIGN_OR_RETURN(const std::string path, resolve(*folder_, location));
  // Not to wait for a writer should it be a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) {
    return not_found(in_file(location) + "cannot be opened: " + std::strerror(errno));
  }
  struct stat about = {};
  const bool known_kind = fstat(descriptor, &about) == 0;
  auto file = std::make_unique<File>(location, descriptor, int64_t{about.st_size});
  if (!known_kind || !S_ISREG(about.st_mode)) {
    return corrupt(in_file(location) + "is no regular file");
  }
  return files_.emplace(location, std::move(file)).first->second.get();
}

StatusOr<ExternalData::Range> ExternalData::locate(const onnx::TensorProto& proto, int64_t size) {
  TANDEM_ASSIGN_OR_RETURN(const Entry entry, read_entry(proto));
  if (!folder_) {
    return unsupported("its data lies in the file '" + entry.location +
                       "': load such a model by its path, not from memory");
  }
  if (entry.length.value_or(size) != size) {
    return corrupt("it has " + std::to_string(*entry.length) + " bytes in the file '" +
                   entry.location + "', but its extents ask for " + std::to_string(size));
  }
  if (size == 0) return Range{};
  TANDEM_ASSIGN_OR_RETURN(File* const file, open(entry.location));
  if (entry.offset > file->size() || size > file->size() - entry.offset) {
    return corrupt(in_file(entry.location) + "is cut short: it has " +
                   std::to_string(file->size()) + " bytes, and the tensor needs " +
                   std::to_string(size) + " from byte " + std::to_string(entry.offset) + " on");
  }
  TANDEM_RETURN_IF_ERROR(file->claim(entry.offset, entry.offset + size, proto.name()));
  return Range{file, entry.offset};
}

Status ExternalData::read(const Range& range, int64_t offset, std::byte* to, size_t count) {
  while (count > 0) {
    const ssize_t done =
        pread(range.file->descriptor(), to, count, static_cast<off_t>(range.offset + offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return corrupt(in_file(range.file->location()) + "cannot be read: " +
                     (done == 0 ? "it became shorter meanwhile" : std::strerror(errno)));
    }
    to += done;
    offset += done;
    count -= static_cast<size_t>(done);
  }
  return {};
}

}  // namespace tandem
