// A YAML document as a tree of texts: no type is guessed before somebody asks for one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::config {

struct Node {
  enum class Kind : std::uint8_t {
    empty,  // "key:", "~", "null"
    scalar,
    list,
    map,
    broken,  // a fault was reported already
  };
  enum class Style : std::uint8_t {
    plain,    // its text tells its type
    quoted,   // text, and so are block scalars
    untyped,  // put in from the environment: whatever is asked for
  };

  Kind kind = Kind::empty;
  Style style = Style::plain;
  int line = 0;    // from 1; 0: not from a file
  int column = 0;  // from 1, in characters
  std::string text{};
  std::string variable{};  // the variable of the environment that overrides the file here

  std::string name{};  // of a map's member; no two of a map are alike
  int key_line = 0;
  int key_column = 0;

  std::vector<Node> children{};  // of a list or map

  [[nodiscard]] const Node* find(std::string_view member) const noexcept {
    if (kind != Kind::map) return nullptr;
    for (const Node& child : children) {
      if (child.name == member) return &child;
    }
    return nullptr;
  }
  [[nodiscard]] Node* find(std::string_view member) noexcept {
    return const_cast<Node*>(static_cast<const Node*>(this)->find(member));
  }
};

}  // namespace stint::config
