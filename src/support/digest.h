// Short names for long texts.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// 128 bits in hexadecimal that tell the texts of one machine apart; no protection from texts that
// are made to collide.
std::string digest(std::string_view text);

}  // namespace tandem
