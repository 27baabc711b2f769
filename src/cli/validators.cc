#include "cli/validators.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace tandem::cli {
namespace {

template <typename T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// `expected`: "a number above 0".
CLI::Validator number(std::function<bool(double)> accepts, const std::string& expected,
                      const std::string& shown) {
  const auto check = [accepts = std::move(accepts), expected](std::string& text) {
    const std::optional<double> value = parse<double>(text);
    const bool fits = value && std::isfinite(*value) && accepts(*value);
    return fits ? std::string() : fmt::format("{} is not {}", text, expected);
  };
  return CLI::Validator(check, shown);
}

}  // namespace

CLI::Validator at_least(long least) {
  const auto check = [least](std::string& text) {
    const std::optional<long> value = parse<long>(text);
    return value && *value >= least ? std::string()
                                    : fmt::format("{} is not an integer from {} on", text, least);
  };
  return CLI::Validator(check, fmt::format(">={}", least));
}

CLI::Validator positive() {
  return number([](double value) { return value > 0; }, "a number above 0", ">0");
}

CLI::Validator number_from(double least) {
  return number([least](double value) { return value >= least; },
                fmt::format("a number from {} on", least), fmt::format(">={}", least));
}

CLI::Validator share_of_one(double least) {
  return number([least](double value) { return value >= least && value <= 1; },
                fmt::format("a number from {} to 1", least), fmt::format("{} to 1", least));
}

}  // namespace tandem::cli
