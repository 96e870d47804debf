// What a Redis server answers (RESP2), and the parser of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stint::redis {

// One value of a reply, and for an array what is in it. A view of 24 bytes: valid as long as the
// Reply that it comes from. Asked for what it is not, it answers 0, "" or nil: a check of the
// shape of a reply is a check of kinds.
class Value {
 public:
  enum class Kind : std::uint8_t { nil, integer, text, error, array };

  Value() noexcept = default;
  [[nodiscard]] static Value of_integer(std::int64_t value) noexcept;
  // `kind`: text or error. Binary safe.
  [[nodiscard]] static Value of_text(Kind kind, std::string_view text) noexcept;
  [[nodiscard]] static Value of_array(std::span<Value> elements) noexcept;

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }
  [[nodiscard]] std::int64_t integer() const noexcept;
  // Of a text or an error.
  [[nodiscard]] std::string_view text() const noexcept;
  // A number, whether sent as one or as its decimal text.
  [[nodiscard]] std::optional<std::int64_t> number() const noexcept;
  [[nodiscard]] std::span<const Value> elements() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return elements().size(); }
  // Nil beyond the end.
  [[nodiscard]] const Value& operator[](std::size_t index) const noexcept;

 private:
  friend class ReplyReader;
  [[nodiscard]] Value* mutable_elements() noexcept;

  Kind kind_ = Kind::nil;
  std::size_t size_ = 0;
  union {
    std::int64_t integer_ = 0;
    const char* text_;
    Value* elements_;
  };
};

class Arena;

// A whole reply: the outermost value, which owns all of it.
class Reply : public Value {
 public:
  Reply() noexcept;  // nil
  Reply(Value root, std::unique_ptr<Arena> arena) noexcept;
  Reply(Reply&&) noexcept;
  Reply& operator=(Reply&&) noexcept;
  ~Reply();

  // One whole reply as it is sent (":1\r\n"), for fakes and tests. Throws std::invalid_argument.
  [[nodiscard]] static Reply parse(std::string_view resp);

 private:
  std::unique_ptr<Arena> arena_;  // null: there is nothing to own
};

// Replies from bytes as they come. What it reports once, it reports for ever: such a connection is
// dead. RESP2 only, arrays in at most 7 levels.
// Thread rule: one thread.
class ReplyReader {
 public:
  struct Limits {
    // Of one reply as it is sent, above which it is an error.
    std::size_t bytes = std::size_t{64} * 1024 * 1024;
    // Of one reply's arrays together: they are allocated when the reply says so, before they come.
    std::size_t elements = std::size_t{1024} * 1024;
  };
  ReplyReader();
  explicit ReplyReader(Limits limits);
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  void feed(std::string_view bytes);
  // The next whole reply; nothing until more is fed. Error: what is wrong with the bytes.
  [[nodiscard]] std::expected<std::optional<Reply>, std::string> next();
  // Bytes that came and are not yet part of a reply.
  [[nodiscard]] std::size_t unread_bytes() const noexcept;
  // What the buffer for bytes takes.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::redis
