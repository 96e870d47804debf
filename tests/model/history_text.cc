#include <algorithm>
#include <charconv>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "tests/model/history.h"

namespace stint::model {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

std::string text_of(const Amount& amount) {
  if (amount.quarters == 0) return std::to_string(amount.plus);
  std::string text = std::to_string(amount.quarters) + "/4";
  if (amount.plus > 0) text += "+";
  if (amount.plus != 0) text += std::to_string(amount.plus);
  return text;
}

bool same(const Amount& a, const Amount& b) { return a.quarters == b.quarters && a.plus == b.plus; }

std::string text_of(const std::vector<Use>& uses) {
  std::string text;
  for (const Use& use : uses) {
    if (!text.empty()) text += " |";
    text += " " + std::to_string(use.policy) + "/" + std::to_string(use.key);
    if (use.shadow) text += " shadow";
    for (const Ask& ask : use.asks) {
      text += " " + text_of(ask.need);
      if (!same(ask.charge, ask.need)) text += ":" + text_of(ask.charge);
      if (ask.skip) text += ":skip";
    }
  }
  return text;
}

std::string text_of(const Limit& limit) {
  std::string text = std::string(to_string(limit.unit)) + " " +
                     std::string(to_string(limit.algorithm)) + " " +
                     std::to_string(limit.window.count()) + " " + std::to_string(limit.quota);
  if (limit.burst) text += " burst " + std::to_string(*limit.burst);
  return text;
}

std::string place(std::size_t policy, std::size_t limit) {
  return std::to_string(policy) + "." + std::to_string(limit);
}

// The words of one line.
class Words {
 public:
  explicit Words(const std::string& line) : line_(line), in_(line) {}

  [[nodiscard]] std::optional<std::string> next() {
    std::string word;
    if (in_ >> word) return word;
    return std::nullopt;
  }
  std::string word() {
    auto found = next();
    if (!found) fail();
    return *found;
  }
  std::int64_t number() { return to_number(word()); }
  std::size_t index() { return static_cast<std::size_t>(number()); }

  [[nodiscard]] std::int64_t to_number(std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) fail();
    return value;
  }
  [[nodiscard]] Amount to_amount(std::string_view text) const {
    const std::size_t share = text.find("/4");
    if (share == std::string_view::npos) return {0, to_number(text)};
    std::string_view plus = text.substr(share + 2);
    if (plus.starts_with('+')) plus.remove_prefix(1);
    return {to_number(text.substr(0, share)), plus.empty() ? 0 : to_number(plus)};
  }
  [[nodiscard]] std::pair<std::string, std::string> split(const std::string& text,
                                                          char separator) const {
    const std::size_t at = text.find(separator);
    if (at == std::string::npos) fail();
    return {text.substr(0, at), text.substr(at + 1)};
  }
  [[noreturn]] void fail() const { throw std::runtime_error("not a line of a history: " + line_); }

 private:
  std::string line_;
  std::istringstream in_;
};

Ask to_ask(const Words& words, const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ':');) parts.push_back(part);
  Ask ask;
  ask.skip = parts.back() == "skip";
  if (ask.skip) parts.pop_back();
  if (parts.empty()) words.fail();
  ask.need = words.to_amount(parts.front());
  ask.charge = words.to_amount(parts.back());
  return ask;
}

std::vector<Use> read_uses(Words& words) {
  std::vector<Use> uses;
  bool starts = true;
  while (const auto word = words.next()) {
    if (*word == "|") {
      starts = true;
    } else if (starts) {
      const auto [policy, key] = words.split(*word, '/');
      uses.push_back({static_cast<std::size_t>(words.to_number(policy)),
                      static_cast<std::size_t>(words.to_number(key)),
                      false,
                      {}});
      starts = false;
    } else if (*word == "shadow") {
      uses.back().shadow = true;
    } else {
      uses.back().asks.push_back(to_ask(words, *word));
    }
  }
  return uses;
}

Limit read_limit(Words& words) {
  const auto unit = parse_unit(words.word());
  const auto algorithm = parse_algorithm(words.word());
  if (!unit || !algorithm) words.fail();
  Limit limit{.unit = *unit, .algorithm = *algorithm};
  limit.window = Duration{words.number()};
  limit.quota = words.number();
  if (words.next()) limit.burst = words.number();
  return limit;
}

std::pair<std::size_t, std::size_t> read_place(Words& words) {
  const auto [policy, limit] = words.split(words.word(), '.');
  return {static_cast<std::size_t>(words.to_number(policy)),
          static_cast<std::size_t>(words.to_number(limit))};
}

Op read_op(const std::string& name, Words& words) {
  if (name == "acquire") return Acquire{read_uses(words)};
  if (name == "peek") return Peek{read_uses(words)};
  if (name == "settle") {
    Settle settle{words.index(), {}};
    while (const auto word = words.next()) settle.actual.push_back(words.to_amount(*word));
    return settle;
  }
  if (name == "renew") {
    Renew renew;
    while (const auto word = words.next()) {
      renew.picks.push_back(static_cast<std::size_t>(words.to_number(*word)));
    }
    return renew;
  }
  if (name == "reset") {
    const std::string what = words.word();
    if (what == "*") return Reset{};
    const auto [policy, key] = words.split(what, '/');
    Reset reset{static_cast<std::size_t>(words.to_number(policy)), std::nullopt};
    if (key != "*") reset.key = static_cast<std::size_t>(words.to_number(key));
    return reset;
  }
  if (name == "reload") {
    const auto [policy, limit] = read_place(words);
    const std::int64_t quota = words.number();
    return Reload{policy, limit, quota, words.number()};
  }
  if (name == "relayout") {
    const auto [policy, limit] = read_place(words);
    const std::size_t rotate = words.index();
    return Relayout{policy, rotate, limit, Duration{words.number()}};
  }
  if (name == "wait") return Wait{Duration{words.number()}};
  if (name == "edge") {
    const auto [policy, limit] = read_place(words);
    return Edge{policy, limit, Duration{words.number()}};
  }
  if (name == "told") return AsTold{Duration{words.number()}};
  words.fail();
}

}  // namespace

std::int64_t Amount::of(std::int64_t whole) const {
  const std::int64_t share = whole / 4 * quarters + whole % 4 * quarters / 4;
  return std::clamp<std::int64_t>(share + plus, 0, kMaxQuantity);
}

std::string to_text(const Op& op) {
  return std::visit(
      Overloaded{
          [](const Acquire& acquire) { return "acquire" + text_of(acquire.uses); },
          [](const Peek& peek) { return "peek" + text_of(peek.uses); },
          [](const Settle& settle) {
            std::string text = "settle " + std::to_string(settle.pick);
            for (const Amount& amount : settle.actual) text += " " + text_of(amount);
            return text;
          },
          [](const Renew& renew) {
            std::string text = "renew";
            for (const std::size_t pick : renew.picks) text += " " + std::to_string(pick);
            return text;
          },
          [](const Reset& reset) {
            if (!reset.policy) return std::string("reset *");
            return "reset " + std::to_string(*reset.policy) + "/" +
                   (reset.key ? std::to_string(*reset.key) : "*");
          },
          [](const Reload& reload) {
            return "reload " + place(reload.policy, reload.limit) + " " +
                   std::to_string(reload.quota) + " " + std::to_string(reload.burst);
          },
          [](const Relayout& relayout) {
            return "relayout " + place(relayout.policy, relayout.limit) + " " +
                   std::to_string(relayout.rotate) + " " + std::to_string(relayout.window.count());
          },
          [](const Wait& wait) { return "wait " + std::to_string(wait.span.count()); },
          [](const Edge& edge) {
            return "edge " + place(edge.policy, edge.limit) + " " +
                   std::to_string(edge.offset.count());
          },
          [](const AsTold& told) { return "told " + std::to_string(told.offset.count()); },
      },
      op);
}

std::string to_text(const History& history) {
  std::string text = "start " + std::to_string(history.start.time_since_epoch().count()) +
                     "\nttl " + std::to_string(history.lease_ttl.count()) + "\n";
  for (const auto& policy : history.policies) {
    text += "policy\n";
    for (const Limit& limit : policy) text += "limit " + text_of(limit) + "\n";
  }
  for (const Op& op : history.ops) text += to_text(op) + "\n";
  return text;
}

History parse_history(std::string_view text) {
  History history;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    Words words(line);
    const auto name = words.next();
    if (!name || name->starts_with('#')) continue;
    if (*name == "start") {
      history.start = TimePoint{Duration{words.number()}};
    } else if (*name == "ttl") {
      history.lease_ttl = Duration{words.number()};
    } else if (*name == "policy") {
      history.policies.emplace_back();
    } else if (*name == "limit" && !history.policies.empty()) {
      history.policies.back().push_back(read_limit(words));
    } else {
      history.ops.push_back(read_op(*name, words));
    }
  }
  for (const auto& policy : history.policies) {
    if (policy.empty() || !validate(policy)) throw std::runtime_error("a policy is not valid");
  }
  if (history.policies.empty()) throw std::runtime_error("a history needs a policy");
  return history;
}

void showValue(const History& history, std::ostream& out) {
  out << "\n--- 8< --- keep this as seeds/<name>.txt to run it again --- 8< ---\n"
      << to_text(history) << "--- >8 ---\n";
}

}  // namespace stint::model
