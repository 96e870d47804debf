#include "stint/headers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/saturating.h"
#include "limit/tightness.h"

namespace stint {
namespace {

constexpr std::size_t kMaxMembers = 4;
constexpr std::size_t kMaxShownName = 64;
constexpr std::size_t kUsualFields = 8;
// RFC 9651, section 3.3.1: an Integer has at most 15 digits.
constexpr std::int64_t kMaxFieldInteger = 999'999'999'999'999;

constexpr std::int64_t kMillisecond = 1'000;
constexpr std::int64_t kSecond = 1'000'000;

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_padded(std::string& out, unsigned value, std::size_t width) {
  const std::string digits = std::to_string(value);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

std::int64_t seconds_up(Duration span) noexcept { return base::div_ceil(span.count(), kSecond); }

// --- RateLimit-Policy and RateLimit

// What a String of a structured field can show of a byte (RFC 9651, section 3.3.3).
char shown(char byte) noexcept { return byte >= 0x20 && byte <= 0x7E ? byte : '?'; }

std::string_view shown_part(const LimitStatus& status) noexcept {
  return status.policy_name.substr(0, kMaxShownName);
}

bool same_member_name(const LimitStatus& a, const LimitStatus& b) noexcept {
  return a.limit.unit == b.limit.unit && a.limit.window == b.limit.window &&
         a.limit.algorithm == b.limit.algorithm &&
         std::ranges::equal(shown_part(a), shown_part(b), {}, shown, shown);
}

// Writes into room that is known to suffice.
class Writer {
 public:
  explicit Writer(char* begin) noexcept : at_(begin) {}

  [[nodiscard]] char* at() const noexcept { return at_; }
  void put(char byte) noexcept { *at_++ = byte; }
  void put(std::string_view text) noexcept { at_ = std::ranges::copy(text, at_).out; }
  void put(std::int64_t number) noexcept { at_ = std::to_chars(at_, at_ + 20, number).ptr; }

 private:
  char* at_;
};

// At most so many bytes has a member of either field: the name with each byte escaped, unit,
// window, algorithm, number; then the parameters.
constexpr std::size_t kMaxMember = 2 * kMaxShownName + 128 + 128;

void write_window(Writer& out, Duration window) {
  const std::int64_t count = window.count();
  if (count % kSecond == 0) {
    out.put(count / kSecond);
    out.put('s');
  } else if (count % kMillisecond == 0) {
    out.put(count / kMillisecond);
    out.put(std::string_view("ms"));
  } else {
    out.put(count);
    out.put(std::string_view("us"));
  }
}

// The bare item of a member: the same text in both fields, and another one for each limit.
void write_member_name(Writer& out, const Decision& decision, const LimitStatus& status) {
  out.put('"');
  for (const char byte : shown_part(status)) {
    const char visible = shown(byte);
    if (visible == '"' || visible == '\\') out.put('\\');
    out.put(visible);
  }
  out.put('-');
  out.put(to_string(status.limit.unit));
  if (status.limit.algorithm != Algorithm::concurrency) {
    out.put('-');
    write_window(out, status.limit.window);
    if (status.limit.algorithm != Algorithm::fixed_window) {
      out.put('-');
      out.put(to_string(status.limit.algorithm));
    }
  }
  // Counted over the whole decision, not over what is shown: the number does not depend on how
  // the limits stand. Nothing else ends in `-` and digits.
  std::int64_t number = 1;
  for (const LimitStatus& earlier : decision.limits) {
    if (&earlier == &status) break;
    if (same_member_name(earlier, status)) ++number;
  }
  if (number > 1) {
    out.put('-');
    out.put(number);
  }
  out.put('"');
}

void write_parameter(Writer& out, std::string_view name, std::int64_t value) {
  out.put(name);
  out.put(std::min(value, kMaxFieldInteger));
}

std::string_view quota_unit(Unit unit) noexcept {
  switch (unit) {
    case Unit::requests:
      return "requests";
    case Unit::tokens:
      return "tokens";
    case Unit::input_tokens:
      return "input-tokens";
    case Unit::output_tokens:
      return "output-tokens";
    case Unit::concurrency:
      return "concurrent-requests";
  }
  return "requests";
}

// The seconds in which a limit hands out as much as it can hold.
std::int64_t policy_seconds(const Limit& limit) noexcept {
  if (limit.quota <= 0 || limit.capacity() == limit.quota) return seconds_up(limit.window);
  __extension__ using Wide = __int128;
  const Wide share = Wide{limit.capacity()} * limit.window.count();
  const Wide unit = Wide{limit.quota} * kSecond;
  const Wide seconds = (share + unit - 1) / unit;
  return static_cast<std::int64_t>(std::clamp(seconds, Wide{1}, Wide{kMaxFieldInteger}));
}

void write_policy_parameters(Writer& out, const Limit& limit) {
  write_parameter(out, ";q=", limit.capacity());
  out.put(std::string_view(";qu=\""));
  out.put(quota_unit(limit.unit));
  out.put('"');
  if (limit.unit != Unit::concurrency) write_parameter(out, ";w=", policy_seconds(limit));
}

void write_standing_parameters(Writer& out, const LimitStatus& status) {
  write_parameter(out, ";r=", status.remaining);
  const Duration more = status.verdict == Verdict::refused ? status.wait : status.reset;
  if (status.limit.unit != Unit::concurrency && more > Duration::zero()) {
    write_parameter(out, ";t=", seconds_up(more));
  }
}

using Ordered = std::vector<const LimitStatus*>;

// The limits to speak of: the one that refused, then the others, tightest first.
Ordered ordered(const Decision& decision) {
  Ordered order;
  order.reserve(decision.limits.size());
  for (const LimitStatus& status : decision.limits) {
    if (!status.shadow && status.verdict != Verdict::skipped) order.push_back(&status);
  }
  std::ranges::sort(order, [](const LimitStatus* a, const LimitStatus* b) {
    if (limit::tighter(*a, *b)) return true;
    return !limit::tighter(*b, *a) && a < b;  // alike: in the order of the policies
  });
  const auto refuser = std::ranges::find(order, decision.refused_by());
  if (refuser != order.end()) std::rotate(order.begin(), refuser, refuser + 1);
  return order;
}

void add_draft_fields(std::vector<HeaderField>& fields, const Decision& decision,
                      std::span<const LimitStatus* const> order) {
  std::array<char, kMaxMembers * kMaxMember> policies;
  std::array<char, kMaxMembers * kMaxMember> standings;
  Writer policy(policies.data());
  Writer standing(standings.data());
  for (const LimitStatus* status : order.first(std::min(order.size(), kMaxMembers))) {
    if (status != order.front()) {
      policy.put(std::string_view(", "));
      standing.put(std::string_view(", "));
    }
    const char* const begin = policy.at();
    write_member_name(policy, decision, *status);
    standing.put(std::string_view(begin, policy.at()));
    write_policy_parameters(policy, status->limit);
    write_standing_parameters(standing, *status);
  }
  fields.push_back({"RateLimit-Policy", std::string(policies.data(), policy.at())});
  fields.push_back({"RateLimit", std::string(standings.data(), standing.at())});
}

// --- The styles

// As Go prints a time.Duration, which is where OpenAI's form comes from: "1h0m0s", "1.5s", "12ms".
std::string go_duration(Duration span) {
  const std::int64_t total = base::div_ceil(span.count(), kMillisecond);
  std::string text;
  if (total > 0 && total < 1'000) {
    append_number(text, total);
    return text + "ms";
  }
  const std::int64_t hours = total / 3'600'000;
  const std::int64_t minutes = total / 60'000 % 60;
  if (hours > 0) {
    append_number(text, hours);
    text += 'h';
  }
  if (hours > 0 || minutes > 0) {
    append_number(text, minutes);
    text += 'm';
  }
  append_number(text, total / 1'000 % 60);
  if (const auto rest = static_cast<unsigned>(total % 1'000); rest != 0) {
    text += '.';
    append_padded(text, rest, 3);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "s";
}

std::string rfc3339(TimePoint instant) {
  const auto second = std::chrono::ceil<std::chrono::seconds>(instant);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{second - day};
  std::string text;
  append_padded(text, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  text += '-';
  append_padded(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  append_padded(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  append_padded(text, static_cast<unsigned>(time.hours().count()), 2);
  text += ':';
  append_padded(text, static_cast<unsigned>(time.minutes().count()), 2);
  text += ':';
  append_padded(text, static_cast<unsigned>(time.seconds().count()), 2);
  return text + "Z";
}

constexpr unsigned bit(Unit unit) noexcept { return 1U << static_cast<unsigned>(unit); }

// A set of three fields, and the units it speaks for.
struct Kind {
  unsigned units;
  std::string_view limit;
  std::string_view remaining;
  std::string_view reset;
};

constexpr Kind kPlain{~0U, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"};

constexpr std::array<Kind, 2> kOpenAi{
    {{bit(Unit::requests), "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
      "x-ratelimit-reset-requests"},
     {bit(Unit::tokens) | bit(Unit::input_tokens) | bit(Unit::output_tokens),
      "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"}}};

constexpr std::array<Kind, 4> kAnthropic{
    {{bit(Unit::requests), "anthropic-ratelimit-requests-limit",
      "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
     {bit(Unit::tokens), "anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining",
      "anthropic-ratelimit-tokens-reset"},
     {bit(Unit::input_tokens), "anthropic-ratelimit-input-tokens-limit",
      "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"},
     {bit(Unit::output_tokens), "anthropic-ratelimit-output-tokens-limit",
      "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"}}};

void add_kind(std::vector<HeaderField>& fields, const Kind& kind, const LimitStatus& status,
              std::string reset) {
  fields.push_back({kind.limit, std::to_string(status.limit.capacity())});
  fields.push_back({kind.remaining, std::to_string(status.remaining)});
  fields.push_back({kind.reset, std::move(reset)});
}

// One set of fields for each kind that has a limit, about the first one in the order.
template <class ResetText>
void add_kinds(std::vector<HeaderField>& fields, std::span<const Kind> kinds, const Ordered& order,
               ResetText reset_text) {
  for (const Kind& kind : kinds) {
    const auto found = std::ranges::find_if(order, [&](const LimitStatus* status) {
      return (kind.units & bit(status->limit.unit)) != 0;
    });
    if (found != order.end()) add_kind(fields, kind, **found, reset_text((*found)->reset));
  }
}

// A slot is free again when the answer has been read, so what is left of a concurrency limit
// says least to a client that reads just one set of fields.
const LimitStatus& plainest(const Decision& decision, const Ordered& order) {
  if (decision.refused_by() != nullptr) return *order.front();
  const auto windowed = std::ranges::find_if(
      order, [](const LimitStatus* status) { return status->limit.unit != Unit::concurrency; });
  return windowed == order.end() ? *order.front() : **windowed;
}

void add_style_fields(std::vector<HeaderField>& fields, const Decision& decision, HeaderStyle style,
                      const Ordered& order, TimePoint now) {
  switch (style) {
    case HeaderStyle::plain: {
      const LimitStatus& status = plainest(decision, order);
      return add_kind(fields, kPlain, status, std::to_string(seconds_up(status.reset)));
    }
    case HeaderStyle::openai:
      return add_kinds(fields, kOpenAi, order, go_duration);
    case HeaderStyle::anthropic:
      return add_kinds(fields, kAnthropic, order,
                       [&](Duration reset) { return rfc3339(now + reset); });
  }
}

void add_retry_fields(std::vector<HeaderField>& fields, const Decision& decision) {
  if (decision.refused_by() == nullptr) return;
  const auto wait = decision.retry_after();
  if (!wait) {
    fields.push_back({"x-should-retry", "false"});
    return;
  }
  const std::int64_t seconds = std::max<std::int64_t>(seconds_up(*wait), 1);
  fields.push_back({"Retry-After", std::to_string(seconds)});
  fields.push_back({"retry-after-ms", std::to_string(base::div_ceil(wait->count(), kMillisecond))});
}

}  // namespace

std::vector<HeaderField> rate_limit_headers(const Decision& decision, HeaderStyle style,
                                            TimePoint now) {
  std::vector<HeaderField> fields;
  if (decision.outcome == Outcome::undecided) return fields;
  const Ordered order = ordered(decision);
  if (order.empty()) return fields;
  fields.reserve(kUsualFields);
  add_draft_fields(fields, decision, order);
  add_style_fields(fields, decision, style, order, now);
  add_retry_fields(fields, decision);
  return fields;
}

}  // namespace stint
