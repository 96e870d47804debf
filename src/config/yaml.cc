#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <tuple>
#include <utility>

#include "config/text_check.h"

namespace stint::config {
namespace {

// Deeper than any configuration; the parser itself gives up at 500.
constexpr std::size_t kMaxDepth = 32;

// Ends the parsing: what follows would make no sense.
struct Stop {};

// Builds the tree from the parser's events. Events, unlike the nodes of yaml-cpp, tell quoted from
// plain scalars, show repeated keys, and carry a position each.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& file, std::string_view source) : file_(file), lines_(source) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const bool marked = source().substr(offset(mark)).starts_with("---");
    fault(mark, "",
          marked ? "a second document is not allowed in a file"
                 : "stands outside of what began before; is the indentation right?");
    throw Stop{};
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    fault(mark, path(), "the anchor &" + name + " is not allowed: write the value out");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fault(mark, path(), "an alias is not allowed: write the value out");
    add(mark, Node{.kind = Node::Kind::broken});
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    if (expects_key()) refuse_key(mark);
    add(mark, Node{});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    const bool broken = check_tag(mark, tag) || (tag == "!" && check_quote(mark)) ||
                        (tag == "?" && check_one_line(mark, value));
    if (expects_key()) {
      take_key(mark, tag, value);
      return;
    }
    add(mark, Node{.kind = broken ? Node::Kind::broken : Node::Kind::scalar,
                   .style = tag == "?" ? Node::Style::plain : Node::Style::quoted,
                   .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

  void syntax_fault(const YAML::ParserException& error) {
    const std::string& message = error.msg;
    if (message.starts_with("the referenced anchor")) {
      fault(error.mark, path(),
            "an alias is not allowed: write the value out; a text that begins with * needs quotes");
      return;
    }
    if (message.starts_with("alias not found")) {
      fault(error.mark, path(), "a text that begins with * needs quotes: \"*\"");
      return;
    }
    fault(error.mark, path(), "is no YAML: " + message + hint(message, offset(error.mark)));
  }
  void fault_at(std::size_t offset, std::string key, std::string message) {
    const auto [line, column] = lines_.at(offset);
    faults_.push_back({file_, line, column, std::move(key), std::move(message)});
  }

  [[nodiscard]] std::size_t documents() const noexcept { return documents_; }
  [[nodiscard]] Node& root() noexcept { return root_; }
  [[nodiscard]] std::vector<Fault>& faults() noexcept { return faults_; }

 private:
  // A list or map that is being read.
  struct Frame {
    Node node;
    std::string key{};  // of a map: the last name
    int key_line = 0;
    int key_column = 0;
    bool waiting = false;  // for the value of that name
    bool dropped = false;  // that value is not kept: the name was refused
  };

  [[nodiscard]] std::string_view source() const noexcept { return lines_.text(); }
  // yaml-cpp counts bytes, and its marks of the very end may lie beyond it.
  [[nodiscard]] std::size_t offset(const YAML::Mark& mark) const noexcept {
    return std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), source().size());
  }
  void fault(const YAML::Mark& mark, std::string key, std::string message) {
    fault_at(offset(mark), std::move(key), std::move(message));
  }

  // What is usually the matter.
  [[nodiscard]] std::string hint(std::string_view message, std::size_t offset) const {
    const std::size_t begin = source().substr(0, offset).rfind('\n') + 1;
    const std::string_view line = source().substr(begin, source().find('\n', offset) - begin);
    if (message.ends_with("flow not found") && line.find("${") != std::string_view::npos) {
      return "; a ${} inside of { } or [ ] ends it: write one key a line instead";
    }
    const std::string_view indentation = line.substr(0, line.find_first_not_of(" \t"));
    if (indentation.find('\t') != std::string_view::npos ||
        message.find("tab") != std::string_view::npos) {
      return "; indent by spaces, not by tabs";
    }
    if (message == "end of map not found" || message == "end of sequence not found" ||
        message == "illegal block entry") {
      return "; is the indentation right?";
    }
    if (message == "illegal map value") {
      return "; is the indentation right, and does a text with ': ' stand in quotes?";
    }
    if (message == "illegal EOF in scalar") return "; is a quote not closed?";
    if (message == "unknown token") return "; texts that begin with @, ` or % need quotes";
    return {};
  }

  [[nodiscard]] std::string path() const {
    std::string text;
    for (const Frame& frame : frames_) {
      if (frame.node.kind == Node::Kind::list) {
        text += "[" + std::to_string(frame.node.children.size()) + "]";
      } else if (!frame.key.empty()) {
        text += (text.empty() ? "" : ".") + frame.key;
      }
    }
    return text;
  }

  [[nodiscard]] bool expects_key() const noexcept {
    return !frames_.empty() && frames_.back().node.kind == Node::Kind::map &&
           !frames_.back().waiting;
  }
  void refuse_key(const YAML::Mark& mark) {
    fault(mark, path(), "a key must be a text on one line");
    throw Stop{};
  }
  void take_key(const YAML::Mark& mark, const std::string& tag, const std::string& name) {
    Frame& frame = frames_.back();
    const Node* before = frame.node.find(name);
    frame.key = name;
    std::tie(frame.key_line, frame.key_column) = lines_.at(offset(mark));
    frame.waiting = true;
    frame.dropped = true;
    if (tag == "?" && name == "<<") {
      fault(mark, path(), "a merge key is not allowed: write the values out");
    } else if (before != nullptr) {
      fault(mark, path(), "stands there twice, first in line " + std::to_string(before->key_line));
    } else {
      frame.dropped = false;
    }
  }

  // True: there was a fault.
  bool check_tag(const YAML::Mark& mark, const std::string& tag) {
    const std::string_view rest = source().substr(offset(mark));
    if ((tag.empty() || tag == "?" || tag == "!") && !rest.starts_with('!')) return false;
    fault(mark, path(), "a tag is not allowed: a text in quotes is text, others tell their type");
    return true;
  }
  // yaml-cpp takes the end of the file for the end of a quoted text.
  bool check_quote(const YAML::Mark& mark) {
    const std::size_t begin = offset(mark);
    const char quote = begin < source().size() ? source()[begin] : '\0';
    if (quote != '\'' && quote != '"') return false;  // a block scalar
    for (std::size_t i = begin + 1; i < source().size(); ++i) {
      const char c = source()[i];
      if (c == '\n') {
        fault(mark, path(), "has a quote that is not closed on its line");
        return true;
      }
      if (quote == '"' && c == '\\') {
        ++i;
      } else if (c == quote) {
        if (quote == '"' || !source().substr(i + 1).starts_with('\'')) return false;
        ++i;
      }
    }
    fault(mark, path(), "has a quote that is not closed");
    return true;
  }
  // A plain text that goes on in the next line is far more often an indentation gone wrong.
  bool check_one_line(const YAML::Mark& mark, const std::string& value) {
    const std::size_t begin = offset(mark);
    const std::string_view rest = source().substr(begin);
    if (rest.starts_with(value) || rest.starts_with('&')) return false;  // an anchor was told
    const std::size_t line_end = std::min(source().find('\n', begin), source().size());
    const std::size_t next = source().find_first_not_of(" \t\r\n", line_end);
    fault_at(std::min(next, begin + rest.size()), path(),
             "goes on from the line above; is the indentation right? If so, use '|'");
    return true;
  }

  void open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind) {
    if (expects_key()) refuse_key(mark);
    check_tag(mark, tag);
    if (frames_.size() == kMaxDepth) {
      fault(mark, path(), "is nested too deep");
      throw Stop{};
    }
    const auto [line, column] = lines_.at(offset(mark));
    frames_.push_back({.node = Node{.kind = kind, .line = line, .column = column}});
  }
  void close() {
    Node node = std::move(frames_.back().node);
    frames_.pop_back();
    place(std::move(node));
  }
  void add(const YAML::Mark& mark, Node node) {
    std::tie(node.line, node.column) = lines_.at(offset(mark));
    place(std::move(node));
  }
  void place(Node node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == Node::Kind::map) {
      frame.waiting = false;
      if (frame.dropped) return;
      node.name = frame.key;
      node.key_line = frame.key_line;
      node.key_column = frame.key_column;
      if (node.kind == Node::Kind::empty) {  // whose mark is that of what comes next
        node.line = frame.key_line;
        node.column = frame.key_column;
      }
    }
    frame.node.children.push_back(std::move(node));
  }

  std::string file_;
  Lines lines_;
  std::size_t documents_ = 0;
  std::vector<Frame> frames_;
  Node root_{};
  std::vector<Fault> faults_;
};

}  // namespace

Loaded<Node> parse_yaml(const std::string& file, std::string_view text) {
  // yaml-cpp guesses at encodings, and takes a byte of 4 for the end of the file.
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Builder builder(file, text);
  if (const auto bad = find_non_text(text)) {
    builder.fault_at(*bad, "", std::string(kNoText));
    return {.value = std::nullopt, .faults = std::move(builder.faults()), .warnings = {}};
  }

  bool whole = true;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    whole = false;
  } catch (const YAML::ParserException& error) {
    builder.syntax_fault(error);
    whole = false;
  }
  if (whole && (builder.documents() == 0 || builder.root().kind == Node::Kind::empty)) {
    builder.faults().push_back({file, 1, 1, "", "is empty"});
    whole = false;
  }
  Loaded<Node> loaded;
  if (whole) loaded.value = std::move(builder.root());
  loaded.faults = std::move(builder.faults());
  return loaded;
}

}  // namespace stint::config
