#include "redis/command.h"

#include <charconv>
#include <cstddef>

namespace stint::redis {
namespace {

// "*3\r\n", "$5\r\n".
void append_head(std::string& out, char type, std::size_t number) {
  char head[24];
  head[0] = type;
  char* end = std::to_chars(head + 1, head + sizeof head, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(head, static_cast<std::size_t>(end - head));
}

void append_word(std::string& out, std::string_view word) {
  append_head(out, '$', word.size());
  out.append(word);
  out.append("\r\n", 2);
}

}  // namespace

void append_command(std::string& out, std::span<const std::string_view> words) {
  append_head(out, '*', words.size());
  for (const std::string_view word : words) append_word(out, word);
}

void append_evalsha(std::string& out, std::string_view sha1, std::span<const std::string_view> keys,
                    std::span<const std::string_view> args) {
  append_head(out, '*', 3 + keys.size() + args.size());
  append_word(out, "EVALSHA");
  append_word(out, sha1);
  char count[24];
  const char* const end = std::to_chars(count, count + sizeof count, keys.size()).ptr;
  append_word(out, std::string_view(count, end));
  for (const std::string_view key : keys) append_word(out, key);
  for (const std::string_view arg : args) append_word(out, arg);
}

}  // namespace stint::redis
