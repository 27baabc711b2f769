#include "lane/opencl/program_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "fmt/format.h"
#include "lane/opencl/embedded_kernels.h"
#include "support/digest.h"
#include "support/write_file.h"

namespace tandem::opencl {
namespace {

constexpr size_t kLogLines = 12;
// Another process that compiles one program is done sooner than this, unless it is stopped.
constexpr std::chrono::seconds kCompilePatience{20};
constexpr std::chrono::milliseconds kLockPause{2};
// Another process may disturb a build only so often.
constexpr int kBuilds = 3;

// Keeps other processes from compiling with the same cache. Waiting for it is worth the while, as
// what the other has compiled need not be compiled again, and no matter of right or wrong: without
// a folder, or where the other takes too long, there is no lock.
class CompileLock {
 public:
  // Sets `*patient` to false where the other has taken too long. Does nothing where it is false.
  CompileLock(const std::string& directory, bool* patient) {
    if (directory.empty() || !*patient) return;
    file_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const auto deadline = std::chrono::steady_clock::now() + kCompilePatience;
    while (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return;
      *patient = std::chrono::steady_clock::now() < deadline;
      if (!*patient) return;
      std::this_thread::sleep_for(kLockPause);
    }
  }
  ~CompileLock() {
    if (file_ >= 0) close(file_);
  }
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;

 private:
  int file_ = -1;
};

// What lies in a cache file in front of the binary: enough to know a file that is not ours, not for
// this device, or not whole.
std::string header_of(const std::string& key, std::string_view binary) {
  return fmt::format("tandem program 1\n{}\n{} {}\n", key, binary.size(), digest(binary));
}

std::string first_lines(const std::string& text, size_t count) {
  size_t end = 0;
  for (size_t line = 0; line < count && end != std::string::npos; ++line) {
    end = text.find('\n', end + (line > 0));
  }
  return end == std::string::npos ? text : text.substr(0, end) + "\n...";
}

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();
}

}  // namespace

ProgramCache::ProgramCache(cl_context context, const Device& device, std::string directory)
    : context_(context), device_(device), directory_(std::move(directory)) {
  if (directory_ == "none") directory_.clear();
  if (directory_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) {
    warn(fmt::format("cannot create the program cache {}: {}", directory_, error.message()));
    directory_.clear();
  }
}

StatusOr<cl_program> ProgramCache::program(const std::vector<std::string>& files,
                                           const std::string& options) {
  std::string source;
  for (const std::string& file : files) {
    const auto found = embedded_kernels().find(file);
    if (found == embedded_kernels().end()) {
      return internal_error(fmt::format("there is no kernel file {}", file));
    }
    source += found->second;
    source += '\n';
  }
  return program_from_source(files.back(), source, options);
}

StatusOr<cl_program> ProgramCache::program_from_source(const std::string& name,
                                                       const std::string& source,
                                                       const std::string& options) {
  const std::string all_options =
      options.empty() ? device_.language_option : device_.language_option + " " + options;
  const std::string key =
      fmt::format("{}\n{}\n{}", device_.fingerprint(), all_options, digest(source));
  if (const auto found = programs_.find(key); found != programs_.end()) {
    return found->second.get();
  }
  const std::string path =
      directory_.empty() ? std::string() : fmt::format("{}/{}.clbin", directory_, digest(key));
  Program program;
  if (!path.empty()) program = load(path, key);
  if (!program.get()) {
    const CompileLock lock(directory_, &waits_for_others_);
    if (!path.empty()) program = load(path, key);
    if (!program.get()) {
      TANDEM_ASSIGN_OR_RETURN(program, compile(name, source, all_options));
      ++stats_.misses;
      if (!path.empty()) store(path, key, program.get());
      return programs_.emplace(key, std::move(program)).first->second.get();
    }
  }
  ++stats_.hits;
  return programs_.emplace(key, std::move(program)).first->second.get();
}

StatusOr<Program> ProgramCache::compile(const std::string& name, const std::string& source,
                                        const std::string& options) const {
  const char* text = source.data();
  const size_t size = source.size();
  Program program;
  cl_int code = CL_BUILD_PROGRAM_FAILURE;
  // PoCL fails to build, rarely, while another process writes to PoCL's own cache. What really is
  // wrong with a program fails again.
  for (int build = 0; build < kBuilds && code == CL_BUILD_PROGRAM_FAILURE; ++build) {
    program = Program(clCreateProgramWithSource(context_, 1, &text, &size, &code));
    TANDEM_RETURN_IF_ERROR(check(code, "clCreateProgramWithSource"));
    code = clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  }
  if (code != CL_SUCCESS) {
    return device_error(fmt::format("{} does not compile for {} with options \"{}\": {}\n{}", name,
                                    device_.summary.device, options, error_name(code),
                                    first_lines(build_log(program.get(), device_.id), kLogLines)));
  }
  return program;
}

Program ProgramCache::load(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    // No such file is what a first start sees.
    if (errno != ENOENT) warn(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    return {};
  }
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const size_t lines = 3 + static_cast<size_t>(std::count(key.begin(), key.end(), '\n'));
  size_t end = 0;
  for (size_t i = 0; i < lines && end != std::string::npos; ++i) {
    end = text.find('\n', end);
    if (end != std::string::npos) ++end;
  }
  const std::string_view binary =
      end == std::string::npos ? std::string_view() : std::string_view(text).substr(end);
  if (end == std::string::npos || text.substr(0, end) != header_of(key, binary)) {
    warn(fmt::format("{} is damaged or was made for another device: compiling afresh", path));
    return {};
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int code = CL_SUCCESS;
  Program program(
      clCreateProgramWithBinary(context_, 1, &device_.id, &size, &bytes, nullptr, &code));
  if (code == CL_SUCCESS) {
    code = clBuildProgram(program.get(), 1, &device_.id, "", nullptr, nullptr);
  }
  if (code != CL_SUCCESS) {
    warn(fmt::format("the driver refuses {}: {}; compiling afresh", path, error_name(code)));
    return {};
  }
  return program;
}

void ProgramCache::store(const std::string& path, const std::string& key, cl_program program) {
  // Some drivers compile only when kernels are created: a binary saved before would lack the code.
  cl_uint kernel_count = 0;
  if (clCreateKernelsInProgram(program, 0, nullptr, &kernel_count) == CL_SUCCESS) {
    std::vector<cl_kernel> kernels(kernel_count);
    if (clCreateKernelsInProgram(program, kernel_count, kernels.data(), nullptr) == CL_SUCCESS) {
      for (const cl_kernel kernel : kernels) clReleaseKernel(kernel);
    }
  }
  size_t size = 0;
  std::string binary;
  cl_int code = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  if (code == CL_SUCCESS) {
    binary.resize(size);
    auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
    code = clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr);
  }
  if (code != CL_SUCCESS || size == 0) {
    warn(fmt::format("the driver gives no binary for {}: {}", path, error_name(code)));
    return;
  }
  if (const Status written = write_file(path, header_of(key, binary) + binary); !written.ok()) {
    warn(fmt::format("the program cache is not kept: {}", written.message()));
  }
}

// One warning of a kind is enough: a folder out of reach would give one per program.
void ProgramCache::warn(std::string message) {
  if (warnings_.empty() || warnings_.back() != message) warnings_.push_back(std::move(message));
}

}  // namespace tandem::opencl
