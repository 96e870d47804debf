// Commands as RESP sends them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stint::redis {

// Both append to `out`, whose memory is meant to be used again and again. Binary safe.
// Thread rule: any thread.

// `words`: at least one.
void append_command(std::string& out, std::span<const std::string_view> words);

// EVALSHA of the script with that digest.
void append_evalsha(std::string& out, std::string_view sha1, std::span<const std::string_view> keys,
                    std::span<const std::string_view> args);

}  // namespace stint::redis
