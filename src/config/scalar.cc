#include "config/scalar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "stint/limit.h"

namespace stint::config {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool all_of(std::string_view text, std::string_view set) noexcept {
  return !text.empty() && text.find_first_not_of(set) == std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  return result;
}

std::string_view without_sign(std::string_view text) noexcept {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

bool boolean_of_yaml_1_1(std::string_view text) {
  const std::string word = lower(text);
  return word == "true" || word == "false" || word == "yes" || word == "no" || word == "on" ||
         word == "off";
}

// What some reader of YAML takes for a number.
bool number_of_some_yaml(std::string_view text) {
  const std::string rest = lower(without_sign(text));
  if (rest == ".inf" || rest == ".nan") return true;
  if (rest.starts_with("0x")) return all_of(std::string_view(rest).substr(2), "0123456789abcdef_");
  if (rest.starts_with("0o")) return all_of(std::string_view(rest).substr(2), "01234567_");
  if (rest.empty() || rest.find_first_of(kDigits) == std::string::npos) return false;
  std::string_view left = rest;
  const auto skip = [&](std::string_view set) {
    left.remove_prefix(std::min(left.find_first_not_of(set), left.size()));
  };
  if (left[0] == '_') return false;
  skip("0123456789_");
  if (left.starts_with('.')) {
    left.remove_prefix(1);
    skip("0123456789_");
  }
  if (left.starts_with('e') && left.size() < rest.size()) {
    left = without_sign(left.substr(1));
    return all_of(left, kDigits);
  }
  return left.empty();
}

// What keeps anything but a scalar of any type from being one.
std::optional<std::string> no_scalar(const Node& node, std::string_view wanted) {
  switch (node.kind) {
    case Node::Kind::list:
      return "must be " + std::string(wanted) + ", not a list";
    case Node::Kind::map:
      return "must be " + std::string(wanted) + ", not a map";
    case Node::Kind::empty:
      return "has no value: it must be " + std::string(wanted);
    case Node::Kind::broken:
    case Node::Kind::scalar:
      return std::nullopt;
  }
  return std::nullopt;
}

std::unexpected<std::string> refuse(const Node& node, std::string_view wanted,
                                    const std::string& hint) {
  return std::unexpected(quoted(node.text) + " must be " + std::string(wanted) +
                         (hint.empty() ? "" : ": " + hint));
}

// How to write a number that was written in another way; empty: no idea.
std::string number_hint(std::string_view text) {
  const std::string_view rest = without_sign(text);
  if (rest.empty()) return {};
  if (text.starts_with('+') && number_of_some_yaml(rest)) return "without a plus sign";
  if (rest.starts_with("0x") || rest.starts_with("0X")) return "decimal, not hexadecimal";
  if (rest.starts_with("0o") || rest.starts_with("0O")) return "decimal, not octal";
  if (rest.find('_') != std::string_view::npos && number_of_some_yaml(rest)) {
    return "without separators";
  }
  if (all_of(rest, kDigits) && rest[0] == '0') {
    return "without a leading zero, which some take for octal";
  }
  if (number_of_some_yaml(rest) && rest.find_first_of("eE") != std::string_view::npos) {
    return "without an exponent";
  }
  const auto unit = rest.find_first_not_of(kDigits);
  if (unit > 0 && unit != std::string_view::npos && rest.size() == unit + 1) {
    return "in full, without a unit";
  }
  return {};
}

std::unexpected<std::string> refuse_number(const Node& node, std::string_view wanted) {
  if (node.style == Node::Style::quoted) {
    return refuse(node, wanted, "in quotes it is text; remove them");
  }
  return refuse(node, wanted, number_hint(node.text));
}

// "0" or a number without a leading zero.
bool plain_digits(std::string_view text) noexcept {
  return all_of(text, kDigits) && (text.size() == 1 || text[0] != '0');
}

}  // namespace

std::string quoted(std::string_view value) {
  constexpr std::size_t kLongest = 60;
  if (value.size() <= kLongest) return "'" + std::string(value) + "'";
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80) --end;
  return "'" + std::string(value.substr(0, end)) + "...'";
}

Scalar<std::string> read_text(const Node& node) {
  if (auto wrong = no_scalar(node, "a text")) return std::unexpected(std::move(*wrong));
  if (node.style == Node::Style::plain) {
    if (number_of_some_yaml(node.text)) {
      return refuse(node, "a text", "put the number in quotes");
    }
    if (boolean_of_yaml_1_1(node.text)) {
      return refuse(node, "a text", "put the word in quotes, which some take for true or false");
    }
  }
  return node.text;
}

Scalar<std::int64_t> read_integer(const Node& node) {
  constexpr std::string_view kWanted = "a whole number";
  if (auto wrong = no_scalar(node, kWanted)) return std::unexpected(std::move(*wrong));
  std::string_view digits = node.text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  if (node.style == Node::Style::quoted || !plain_digits(digits) || node.text == "-0") {
    return refuse_number(node, kWanted);
  }
  std::int64_t value = 0;
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(node.text.data(), end, value).ec != std::errc{}) {
    return refuse(node, "a smaller number", "");
  }
  return value;
}

Scalar<std::string> read_decimal(const Node& node) {
  constexpr std::string_view kWanted = "a decimal number such as 20 or 0.5";
  if (auto wrong = no_scalar(node, kWanted)) return std::unexpected(std::move(*wrong));
  std::string_view whole = node.text;
  if (whole.starts_with('-')) whole.remove_prefix(1);
  const std::size_t point = whole.find('.');
  const bool fraction_good =
      point == std::string_view::npos || all_of(whole.substr(point + 1), kDigits);
  if (node.style == Node::Style::quoted || !fraction_good ||
      !plain_digits(whole.substr(0, point))) {
    return refuse_number(node, kWanted);
  }
  return node.text;
}

Scalar<bool> read_boolean(const Node& node) {
  constexpr std::string_view kWanted = "true or false";
  if (auto wrong = no_scalar(node, kWanted)) return std::unexpected(std::move(*wrong));
  if (node.style == Node::Style::quoted) {
    return refuse(node, kWanted, "in quotes it is text; remove them");
  }
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  return refuse(node, kWanted, "");
}

Scalar<Duration> read_duration(const Node& node) {
  constexpr std::string_view kWanted = "a duration such as 250ms, 10s, 5m, 1h or 1d";
  if (auto wrong = no_scalar(node, kWanted)) return std::unexpected(std::move(*wrong));
  if (all_of(node.text, kDigits)) return refuse(node, kWanted, "it has no unit");
  const auto duration = parse_duration(node.text);
  if (!duration) return std::unexpected(duration.error().message);
  return *duration;
}

}  // namespace stint::config
