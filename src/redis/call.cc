#include "redis/call.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace stint::redis {
namespace {

// What a script passes on names the place in it, in every version of Redis:
//   6.2  ERR Error running script (call to f_<sha1>): @user_script:3: WRONGTYPE Operation ...
//   7.0  WRONGTYPE Operation ... script: <sha1>, on @user_script:3.
constexpr std::string_view kPlace = "user_script";

// Answered before a script runs; or, from inside one, by its first write: a script that has
// written is not stopped for these any more.
constexpr std::array<std::string_view, 11> kNothingWritten = {
    "NOSCRIPT",   "LOADING",  "MOVED",   "ASK", "TRYAGAIN",  "CLUSTERDOWN",
    "MASTERDOWN", "READONLY", "MISCONF", "OOM", "NOREPLICAS"};
// Answered before a script runs; from inside of one it may be for a later command than the first.
constexpr std::array<std::string_view, 6> kNotBegun = {"NOAUTH", "WRONGPASS", "NOPERM",
                                                       "BUSY",   "CROSSSLOT", "DENIED"};
constexpr std::array<std::string_view, 4> kConfiguration = {"NOAUTH", "WRONGPASS", "NOPERM",
                                                            "WRONGTYPE"};
// Errors that have no word of their own, but tell of a wrong configuration.
constexpr std::array<std::string_view, 9> kConfigurationTexts = {
    kPlace,
    "Error running script",
    "Error compiling script",
    "unknown command",
    "wrong number of arguments",
    "DB index is out of range",
    "SELECT is not allowed in cluster mode",
    "invalid password",
    "without any password configured"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) noexcept {
  return std::ranges::find(words, word) != words.end();
}

// The code word at the beginning: capitals, then a blank or the end.
std::string_view code_of(std::string_view text) noexcept {
  std::size_t size = 0;
  while (size < text.size() && text[size] >= 'A' && text[size] <= 'Z') ++size;
  if (size < 2 || (size < text.size() && text[size] != ' ')) return {};
  return text.substr(0, size);
}

// The code word of an error that a script of Redis 6.2 passed on: behind the last place.
std::string_view passed_on_code(std::string_view text) noexcept {
  const std::size_t place = text.rfind(kPlace);
  if (place == std::string_view::npos) return {};
  text.remove_prefix(place + kPlace.size());
  const std::size_t begin = text.find_first_not_of(":- 0123456789");
  return begin == std::string_view::npos ? std::string_view{} : code_of(text.substr(begin));
}

}  // namespace

const char* to_string(Fate fate) noexcept { return fate == Fate::not_run ? "not_run" : "unknown"; }

const char* to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::unavailable:
      return "unavailable";
    case Reason::timed_out:
      return "timed_out";
    case Reason::lost:
      return "lost";
    case Reason::protocol:
      return "protocol";
    case Reason::rejected:
      return "rejected";
    case Reason::configuration:
      return "configuration";
    case Reason::stopped:
      return "stopped";
  }
  return "unknown";
}

CallError classify(std::string_view error_reply) {
  const bool inside = error_reply.find(kPlace) != std::string_view::npos;
  std::string_view code = code_of(error_reply);
  if (inside && code == "ERR") {
    if (const std::string_view inner = passed_on_code(error_reply); !inner.empty()) code = inner;
  }
  CallError error;
  error.code = code;
  error.text = error_reply;
  const bool not_run = is_one_of(kNothingWritten, code) || (!inside && is_one_of(kNotBegun, code));
  error.fate = not_run ? Fate::not_run : Fate::unknown;
  const auto has = [&](std::string_view part) {
    return error_reply.find(part) != std::string_view::npos;
  };
  const bool configuration =
      is_one_of(kConfiguration, code) ||
      (!is_one_of(kNothingWritten, code) && std::ranges::any_of(kConfigurationTexts, has));
  error.reason = configuration ? Reason::configuration : Reason::rejected;
  return error;
}

bool is_failure(const CallError& error) noexcept {
  constexpr std::array<std::string_view, 4> kNormal = {"NOSCRIPT", "MOVED", "ASK", "TRYAGAIN"};
  return error.reason != Reason::stopped && error.reason != Reason::unavailable &&
         !is_one_of(kNormal, error.code);
}

}  // namespace stint::redis
