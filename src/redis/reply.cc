#include "redis/reply.h"

#include <hiredis/read.h>
#include <hiredis/sds.h>

#include <charconv>
#include <cstring>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <utility>

namespace stint::redis {

// Memory of one reply. Most fit into its first block, so that they cost one allocation.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] const char* copy(const char* text, std::size_t size) {
    void* const place = resource_.allocate(size, 1);
    std::memcpy(place, text, size);
    return static_cast<const char*>(place);
  }
  [[nodiscard]] Value* values(std::size_t count) {
    void* const place = resource_.allocate(count * sizeof(Value), alignof(Value));
    return new (place) Value[count];
  }

 private:
  alignas(std::max_align_t) std::byte first_[640];
  std::pmr::monotonic_buffer_resource resource_{first_, sizeof first_};
};

Value Value::of_integer(std::int64_t value) noexcept {
  Value result;
  result.kind_ = Kind::integer;
  result.integer_ = value;
  return result;
}

Value Value::of_text(Kind kind, std::string_view text) noexcept {
  Value result;
  result.kind_ = kind;
  result.size_ = text.size();
  result.text_ = text.data();
  return result;
}

Value Value::of_array(std::span<Value> elements) noexcept {
  Value result;
  result.kind_ = Kind::array;
  result.size_ = elements.size();
  result.elements_ = elements.data();
  return result;
}

std::int64_t Value::integer() const noexcept { return kind_ == Kind::integer ? integer_ : 0; }

std::string_view Value::text() const noexcept {
  const bool has_text = kind_ == Kind::text || kind_ == Kind::error;
  return has_text ? std::string_view(text_, size_) : std::string_view();
}

std::optional<std::int64_t> Value::number() const noexcept {
  if (kind_ == Kind::integer) return integer_;
  if (kind_ != Kind::text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text_, text_ + size_, value);
  const bool whole = error == std::errc{} && end == text_ + size_;
  return whole ? std::optional(value) : std::nullopt;
}

std::span<const Value> Value::elements() const noexcept {
  return kind_ == Kind::array ? std::span<const Value>(elements_, size_) : std::span<const Value>();
}

Value* Value::mutable_elements() noexcept { return elements_; }

const Value& Value::operator[](std::size_t index) const noexcept {
  static constexpr Value kNil{};
  const std::span<const Value> all = elements();
  return index < all.size() ? all[index] : kNil;
}

Reply::Reply() noexcept = default;
Reply::Reply(Value root, std::unique_ptr<Arena> arena) noexcept
    : Value(root), arena_(std::move(arena)) {}
Reply::Reply(Reply&& other) noexcept
    : Value(std::exchange(static_cast<Value&>(other), Value())), arena_(std::move(other.arena_)) {}
Reply& Reply::operator=(Reply&& other) noexcept {
  if (this == &other) return *this;
  static_cast<Value&>(*this) = std::exchange(static_cast<Value&>(other), Value());
  arena_ = std::move(other.arena_);
  return *this;
}
Reply::~Reply() = default;

Reply Reply::parse(std::string_view resp) {
  ReplyReader reader;
  reader.feed(resp);
  auto reply = reader.next();
  if (!reply) throw std::invalid_argument(reply.error());
  if (!*reply) throw std::invalid_argument("less than a whole reply");
  const auto more = reader.next();
  if (!more || *more || reader.unread_bytes() > 0) {
    throw std::invalid_argument("more than one reply");
  }
  return std::move(**reply);
}

// Fills a reply through hiredis' callbacks instead of building its tree of replies: one allocation
// for a reply, not one for each value. What a callback returns is for hiredis only "the object":
// null means that there is no memory, and makes the reader dead.
struct ReplyReader::Impl {
  explicit Impl(Limits limits_in) : limits(limits_in) {
    reader = redisReaderCreateWithFunctions(&functions);
    if (reader == nullptr) throw std::bad_alloc();
    reader->privdata = this;
  }
  ~Impl() { redisReaderFree(reader); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] std::size_t unread() const noexcept { return reader->len - reader->pos; }

  Arena& memory() {
    if (!arena) arena = std::make_unique<Arena>();
    return *arena;
  }
  // Where the value of this task belongs.
  static Value& place_of(const redisReadTask* task) noexcept {
    if (task->parent == nullptr) return static_cast<Impl*>(task->privdata)->root;
    return static_cast<Value*>(task->parent->obj)->mutable_elements()[task->idx];
  }
  static void* put(const redisReadTask* task, Value value) noexcept {
    Value& place = place_of(task);
    place = value;
    return &place;
  }

  // Exceptions must not pass through hiredis.
  static void* create_string(const redisReadTask* task, char* text, std::size_t size) noexcept try {
    const auto kind = task->type == REDIS_REPLY_ERROR ? Value::Kind::error : Value::Kind::text;
    const char* const copy = static_cast<Impl*>(task->privdata)->memory().copy(text, size);
    return put(task, Value::of_text(kind, std::string_view(copy, size)));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  static void* create_array(const redisReadTask* task, int size) noexcept try {
    Impl& self = *static_cast<Impl*>(task->privdata);
    const auto count = static_cast<std::size_t>(size);
    if (count > self.limits.elements - self.elements) {
      self.too_many = true;
      return nullptr;
    }
    self.elements += count;
    Value* const values = count > 0 ? self.memory().values(count) : nullptr;
    return put(task, Value::of_array({values, count}));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  static void* create_integer(const redisReadTask* task, long long value) noexcept {
    return put(task, Value::of_integer(value));
  }
  static void* create_nil(const redisReadTask* task) noexcept { return put(task, Value()); }
  static void free_object(void* /*object*/) noexcept {}  // the arena does it

  void begin_next() noexcept {
    root = Value();
    elements = 0;
    consumed = 0;
  }

  static inline redisReplyObjectFunctions functions = {create_string, create_array, create_integer,
                                                       create_nil, free_object};
  Limits limits;
  redisReader* reader = nullptr;
  std::string error;  // empty: none

  // Of the reply that is under way.
  Value root;
  std::unique_ptr<Arena> arena;
  std::size_t elements = 0;
  std::size_t consumed = 0;  // bytes that are out of the buffer already
  bool too_many = false;
};

ReplyReader::ReplyReader() : ReplyReader(Limits()) {}
ReplyReader::ReplyReader(Limits limits) : impl_(std::make_unique<Impl>(limits)) {}
ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes) {
  if (bytes.empty() || !impl_->error.empty()) return;
  // It also gives a large buffer back that is empty (REDIS_READER_MAX_BUF).
  if (redisReaderFeed(impl_->reader, bytes.data(), bytes.size()) != REDIS_OK) {
    impl_->error = impl_->reader->errstr;
  }
}

std::expected<std::optional<Reply>, std::string> ReplyReader::next() {
  Impl& impl = *impl_;
  if (!impl.error.empty()) return std::unexpected(impl.error);
  const std::size_t before = impl.unread();
  void* object = nullptr;
  if (redisReaderGetReply(impl.reader, &object) != REDIS_OK) {
    impl.error = impl.too_many ? "a reply of too many elements" : impl.reader->errstr;
    return std::unexpected(impl.error);
  }
  if (object == nullptr) {
    impl.consumed += before - impl.unread();
    if (impl.consumed + impl.unread() > impl.limits.bytes) {
      impl.error = "a reply of too many bytes";
      return std::unexpected(impl.error);
    }
    return std::optional<Reply>();
  }
  Reply reply(impl.root, std::move(impl.arena));
  impl.begin_next();
  return std::optional<Reply>(std::move(reply));
}

std::size_t ReplyReader::buffer_bytes() const noexcept { return sdsalloc(impl_->reader->buf); }
std::size_t ReplyReader::unread_bytes() const noexcept { return impl_->consumed + impl_->unread(); }

}  // namespace stint::redis
