// Everything that is read from a configuration: no input crashes it, and what is accepted is
// within the bounds that the public headers name.
//
// Inputs read as text, so that seeds can be written by hand:
//   d<duration>
//   n<name of a unit, an algorithm, an operator or a dimension>
//   l<unit>\n<quota>\n<per>\n<algorithm>\n<burst>\n<capacity>\n<refill_rate>   empty: not given
//   s<rps>\n<rpm>\n...                                                         the short form
//   p<bytes>                                                                   policies
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limit/spec.h"
#include "policy/table.h"
#include "stint/limit.h"
#include "stint/policy.h"
#include "tests/fuzz/require.h"

namespace stint {
namespace {

template <class T>
void require_error(const Result<T>& result) {
  STINT_REQUIRE(result.error().code == ErrorCode::invalid_argument);
  STINT_REQUIRE(!result.error().message.empty());
}

// --- Durations and names

void check_duration(std::string_view text) {
  const auto duration = parse_duration(text);
  if (!duration) return require_error(duration);
  STINT_REQUIRE(*duration >= std::chrono::milliseconds{1});
  // The number in it, read in another way, times its unit.
  const std::size_t digits = text.find_first_not_of("0123456789");
  STINT_REQUIRE(digits > 0 && digits <= 19 && text[0] != '0');
  const std::string_view suffix = text.substr(digits);
  __extension__ using Wide = __int128;
  Wide count = 0;
  for (const char digit : text.substr(0, digits)) count = count * 10 + (digit - '0');
  Wide unit = 0;
  if (suffix == "ms") unit = 1'000;
  if (suffix == "s") unit = 1'000'000;
  if (suffix == "m") unit = 60'000'000;
  if (suffix == "h") unit = 3'600'000'000;
  if (suffix == "d") unit = 86'400'000'000;
  STINT_REQUIRE(count * unit == duration->count());
}

void check_name(std::string_view text) {
  const auto unit = parse_unit(text);
  STINT_REQUIRE(!unit || to_string(*unit) == text);
  const auto algorithm = parse_algorithm(text);
  STINT_REQUIRE(!algorithm || to_string(*algorithm) == text);
  const auto dimension = parse_dimension(text);
  STINT_REQUIRE(!dimension || to_string(*dimension) == text);
  const auto op = parse_operator(text);
  STINT_REQUIRE(!op || *op <= Operator::in);
}

// --- Limits

void require_within_bounds(const Limit& limit) {
  STINT_REQUIRE(limit.unit <= Unit::concurrency && limit.algorithm <= Algorithm::concurrency);
  STINT_REQUIRE(limit.quota >= 0 && limit.quota <= kMaxQuantity);
  STINT_REQUIRE(limit.capacity() >= 0 && limit.capacity() <= kMaxQuantity);
  STINT_REQUIRE(!limit.burst || limit.algorithm == Algorithm::token_bucket);
  const bool concurrency = limit.unit == Unit::concurrency;
  STINT_REQUIRE(concurrency == (limit.algorithm == Algorithm::concurrency));
  if (concurrency) {
    STINT_REQUIRE(limit.window == Duration::zero());
  } else {
    STINT_REQUIRE(limit.window >= kMinWindow && limit.window <= kMaxWindow);
  }
  if (limit.algorithm == Algorithm::sliding_log) {
    STINT_REQUIRE(limit.unit == Unit::requests && limit.quota <= kMaxSlidingLogQuota);
  }
  // What the arithmetic of the steps relies on.
  const auto spec = limit::compile(limit);
  STINT_REQUIRE(spec && spec->limit().capacity() == limit.capacity());
  if (limit.algorithm != Algorithm::sliding_window && limit.algorithm != Algorithm::token_bucket) {
    return;
  }
  STINT_REQUIRE(spec->tick * 100 < limit.window);
  STINT_REQUIRE(spec->max_level <= kMaxQuantity / spec->window_ticks);
  STINT_REQUIRE(spec->max_level / 2 >= spec->capacity);
}

// The lines of a text, one after the other; empty when there are no more.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  std::string_view text() {
    const std::size_t end = text_.find('\n');
    const std::string_view line = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
    return line;
  }
  std::optional<std::int64_t> number() {
    const std::string_view line = text();
    std::int64_t value = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return value;
  }

 private:
  std::string_view text_;
};

void check_limit(std::string_view text) {
  Lines lines(text);
  LimitEntry entry;
  entry.unit = lines.text();
  entry.quota = lines.number();
  entry.per = lines.text();
  entry.algorithm = lines.text();
  entry.burst = lines.number();
  entry.capacity = lines.number();
  entry.refill_rate = lines.text();
  const auto limit = parse(entry);
  if (!limit) {
    require_error(limit);
    constexpr std::array<std::string_view, 7> kFields{
        "unit", "quota", "per", "algorithm", "burst", "capacity", "refill_rate"};
    bool known = false;
    for (const std::string_view field : kFields) known = known || limit.error().field == field;
    STINT_REQUIRE(known);  // a field that the writer of the entry knows
    return;
  }
  require_within_bounds(*limit);
  STINT_REQUIRE(validate(*limit).has_value());
  STINT_REQUIRE(to_string(limit->unit) == entry.unit);
  if (entry.quota) STINT_REQUIRE(limit->quota == *entry.quota);
  if (entry.capacity) STINT_REQUIRE(limit->capacity() == *entry.capacity);
}

void check_short_form(std::string_view text) {
  Lines lines(text);
  ShortLimits limits;
  limits.rps = lines.number();
  limits.rpm = lines.number();
  limits.rph = lines.number();
  limits.rpd = lines.number();
  limits.tps = lines.number();
  limits.tpm = lines.number();
  limits.tph = lines.number();
  limits.tpd = lines.number();
  limits.concurrency = lines.number();
  const auto expanded = expand(limits);
  if (!expanded) return require_error(expanded);
  for (const Limit& limit : *expanded) require_within_bounds(limit);
  STINT_REQUIRE(validate(std::span<const Limit>(*expanded)).has_value());
}

// --- Policies

constexpr std::array kNames{"team", "model", "plan", "header:x", "header:X", "header:", ""};

// Most choices are valid ones, so that whole policies are accepted, and one is not at a time.
bool wild(FuzzedDataProvider& in) { return in.ConsumeIntegralInRange(0, 15) == 15; }

std::int64_t any_number(FuzzedDataProvider& in) {
  return in.ConsumeIntegral<std::int64_t>() >> in.ConsumeIntegralInRange(0, 63);
}

std::string any_name(FuzzedDataProvider& in) {
  if (wild(in)) return in.ConsumeBool() ? "header:" : "";
  return in.ConsumeBool() ? in.ConsumeRandomLengthString(8) : in.PickValueInArray({"team", "plan"});
}

Condition any_condition(FuzzedDataProvider& in, int depth) {
  Condition condition;
  condition.negate = in.ConsumeBool();
  const bool group = depth < 6 && in.ConsumeBool();
  if (group) {
    condition.logic = static_cast<Logic>(wild(in) ? 2 : in.ConsumeIntegralInRange(0, 1));
    const int children = in.ConsumeIntegralInRange(1, 9);
    for (int i = 0; i < children; ++i) condition.children.push_back(any_condition(in, depth + 1));
  } else {
    condition.op = static_cast<Operator>(wild(in) ? 3 : in.ConsumeIntegralInRange(0, 2));
    const int values = wild(in) ? in.ConsumeIntegralInRange(0, 3) : 1;
    for (int i = 0; i < values; ++i) condition.values.push_back(in.ConsumeRandomLengthString(4));
  }
  if (!group || wild(in)) condition.dimension = any_name(in);
  return condition;
}

Limit any_limit(FuzzedDataProvider& in, int number) {
  Limit limit = tokens_per(std::chrono::seconds{number + 1}, 10);
  if (in.ConsumeBool()) limit.quota = any_number(in);
  if (in.ConsumeBool()) limit.window = Duration{any_number(in)};
  if (in.ConsumeBool()) limit.algorithm = static_cast<Algorithm>(in.ConsumeIntegralInRange(0, 5));
  if (in.ConsumeBool()) limit.unit = static_cast<Unit>(in.ConsumeIntegralInRange(0, 5));
  if (in.ConsumeBool()) limit.burst = any_number(in);
  return limit;
}

Policy any_policy(FuzzedDataProvider& in, int number) {
  Policy policy;
  policy.id = wild(in) ? in.ConsumeRandomLengthString(66) : std::to_string(number);
  const int conditions = in.ConsumeIntegralInRange(0, 4);
  for (int i = 0; i < conditions; ++i) policy.conditions.push_back(any_condition(in, 1));
  const int names = in.ConsumeIntegralInRange(0, wild(in) ? 9 : 3);
  for (int i = 0; i < names; ++i) policy.group_by.push_back(any_name(in));
  const int limits = wild(in) ? in.ConsumeIntegralInRange(0, 17) : 1;
  for (int i = 0; i < limits; ++i) policy.limits.push_back(any_limit(in, i));
  policy.mode = static_cast<Mode>(wild(in) ? 2 : in.ConsumeIntegralInRange(0, 1));
  policy.token_admission = static_cast<TokenAdmission>(wild(in) ? 2 : 1);
  return policy;
}

std::size_t leaves(const Condition& condition, std::size_t depth) {
  STINT_REQUIRE(depth <= kMaxConditionDepth);
  if (condition.children.empty()) {
    STINT_REQUIRE(!condition.dimension.empty() && condition.op <= Operator::in);
    STINT_REQUIRE(condition.op == Operator::in ? !condition.values.empty()
                                               : condition.values.size() == 1);
    return 1;
  }
  STINT_REQUIRE(condition.logic <= Logic::any && condition.dimension.empty());
  std::size_t sum = 0;
  for (const Condition& child : condition.children) sum += leaves(child, depth + 1);
  return sum;
}

void require_within_bounds(const Policy& policy) {
  STINT_REQUIRE(!policy.id.empty() && policy.id.size() <= kMaxPolicyId);
  std::size_t sum = 0;
  for (const Condition& condition : policy.conditions) sum += leaves(condition, 1);
  STINT_REQUIRE(sum <= kMaxConditionLeaves);
  STINT_REQUIRE(policy.group_by.size() <= kMaxGroupBy);
  STINT_REQUIRE(!policy.limits.empty() && policy.limits.size() <= kMaxLimits);
  for (const Limit& limit : policy.limits) require_within_bounds(limit);
  STINT_REQUIRE(policy.mode <= Mode::shadow);
  STINT_REQUIRE(policy.token_admission <= TokenAdmission::reserve);
}

void check_policies(std::string_view text) {
  FuzzedDataProvider in(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  std::vector<Policy> policies;
  const int count = in.ConsumeIntegralInRange(1, 3);
  policies.reserve(3);
  for (int i = 0; i < count; ++i) policies.push_back(any_policy(in, i));
  const auto valid = validate(policies);
  const auto table = policy::Table::create(policies);
  STINT_REQUIRE(valid.has_value() == table.has_value());
  if (!valid) {
    STINT_REQUIRE(valid.error().field.starts_with("policies["));
    return require_error(valid);
  }
  for (const Policy& policy : policies) require_within_bounds(policy);
  const std::string value = in.ConsumeRandomLengthString(8);
  Attributes attributes;
  for (const char* name : kNames) {
    if (in.ConsumeBool()) attributes.set(name, value);
  }
  std::string keys;
  for (const policy::CompiledPolicy* policy : (*table)->match(attributes)) {
    (void)policy->write_key(keys, attributes);
  }
}

}  // namespace
}  // namespace stint

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'd':
      stint::check_duration(rest);
      break;
    case 'n':
      stint::check_name(rest);
      break;
    case 'l':
      stint::check_limit(rest);
      break;
    case 's':
      stint::check_short_form(rest);
      break;
    case 'p':
      stint::check_policies(rest);
      break;
    default:
      break;
  }
  return 0;
}
