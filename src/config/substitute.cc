#include "config/substitute.h"

#include <cstddef>
#include <utility>

#include "config/text_check.h"

namespace stint::config {
namespace {

bool is_name(std::string_view text) noexcept {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

// The value of what stands between the braces.
Scalar<std::string> value_of(std::string_view inside, const Environment& environment) {
  const std::size_t fallback = inside.find(":-");
  const std::string_view name = inside.substr(0, fallback);
  if (!is_name(name)) {
    return std::unexpected("${" + std::string(inside) +
                           "} names no variable; write $$ for a dollar");
  }
  const auto found = environment.find(name);
  if (fallback != std::string_view::npos) {
    if (found == environment.end() || found->second.empty()) {
      return std::string(inside.substr(fallback + 2));
    }
  } else if (found == environment.end()) {
    return std::unexpected("the variable " + std::string(name) + " is not set; ${" +
                           std::string(name) + ":-x} would give it a default");
  }
  if (find_non_text(found->second)) {
    return std::unexpected("the variable " + std::string(name) + " " + std::string(kNoText));
  }
  return found->second;
}

void walk(Node& node, const std::string& path, const std::string& file,
          const Environment& environment, std::vector<Fault>& faults) {
  if (node.kind == Node::Kind::scalar && node.variable.empty()) {
    auto text = substitute(node.text, environment);
    if (!text) {
      faults.push_back({file, node.line, node.column, path, std::move(text.error())});
      node.kind = Node::Kind::broken;
    } else if (*text != node.text) {
      node.text = std::move(*text);
      if (node.style == Node::Style::plain) node.style = Node::Style::untyped;
    }
  }
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    Node& child = node.children[i];
    const std::string below = node.kind == Node::Kind::list
                                  ? path + "[" + std::to_string(i) + "]"
                                  : path + (path.empty() ? "" : ".") + child.name;
    walk(child, below, file, environment, faults);
  }
}

}  // namespace

Scalar<std::string> substitute(std::string_view text, const Environment& environment) {
  std::string result;
  while (true) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
    } else if (text.starts_with('{')) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return std::unexpected("has a '${' without a '}'; write $$ for a dollar");
      }
      auto value = value_of(text.substr(1, end - 1), environment);
      if (!value) return value;
      result += *value;
      text.remove_prefix(end + 1);
    } else {
      result += '$';
    }
  }
}

void substitute(Node& root, const std::string& file, const Environment& environment,
                std::vector<Fault>& faults) {
  walk(root, "", file, environment, faults);
}

}  // namespace stint::config
