#include "support/json_error.h"

namespace tandem {
namespace {

// What the parser says ends with all that it has read of a value.
constexpr size_t kMost = 160;

constexpr std::string_view kNoJson = "parse error at ";

// Drops everything up to `end`, if the text starts with `begin`; returns what was between them.
std::string_view take_between(std::string_view begin, std::string_view end,
                              std::string_view* text) {
  const size_t at = text->find(end);
  if (!text->starts_with(begin) || at == std::string_view::npos) return {};
  const std::string_view between = text->substr(begin.size(), at - begin.size());
  text->remove_prefix(at + end.size());
  return between;
}

std::string shortened(std::string_view text) {
  // Bytes of a file that is no text are nothing to show.
  std::string shown;
  for (const char c : text.substr(0, kMost)) shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? shown + "..." : shown;
}

}  // namespace

std::string json_problem(std::string_view what) {
  if (take_between("[json.exception.", "] ", &what).empty()) return shortened(what);
  if (const std::string_view key = take_between("key '", "' not found", &what); !key.empty()) {
    return "'" + shortened(key) + "' is missing";
  }
  if (!what.starts_with(kNoJson)) return shortened(what);
  what.remove_prefix(kNoJson.size());
  // What the parser was after says less than what it found.
  const size_t syntax = what.find("syntax error while parsing ");
  const size_t dash = what.find(" - ", syntax);
  std::string text(what);
  if (syntax != std::string_view::npos && dash != std::string_view::npos) {
    text = std::string(what.substr(0, syntax)) + std::string(what.substr(dash + 3));
  }
  return "it is no JSON: " + shortened(text);
}

}  // namespace tandem
