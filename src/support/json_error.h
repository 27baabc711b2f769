// What nlohmann::json says is wrong, for people.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Of what() of its exceptions: "[json.exception.out_of_range.403] key 'us' not found" is "'us' is
// missing", and "[...] parse error at line 2, column 1: syntax error while parsing value -
// unexpected end of input" is "it is no JSON: line 2, column 1: unexpected end of input". Other
// texts are returned as they are. All are shortened, and without characters that cannot be shown.
std::string json_problem(std::string_view what);

}  // namespace tandem
