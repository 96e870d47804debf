// A Lua script that servers run by its digest.
#pragma once

#include <string>

namespace stint::redis {

// Immutable: shared by reference, and must outlive what it was given to.
// Thread rule: any thread.
class Script {
 public:
  // `name`: for logs and errors. `body`: Lua, as SCRIPT LOAD takes it.
  Script(std::string name, std::string body);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  // What EVALSHA calls it: the SHA-1 of the body, 40 lower-case hex digits.
  [[nodiscard]] const std::string& sha1() const noexcept { return sha1_; }

 private:
  std::string name_;
  std::string body_;
  std::string sha1_;
};

}  // namespace stint::redis
