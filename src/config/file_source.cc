#include "config/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace stint::config {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int file) noexcept : file_(file) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (file_ >= 0) close(file_);  // and with it the lease
  }
  [[nodiscard]] int get() const noexcept { return file_; }

 private:
  int file_;
};

enum class Quiet : std::uint8_t { yes, no, unknown };

// These answer "somebody writes" whenever they cannot know.
bool unreliable_leases(int file) noexcept {
  constexpr std::array<std::uint32_t, 3> kNfsCifsSmb2{0x6969, 0xFF534D42, 0xFE534D42};
  struct statfs system{};
  if (fstatfs(file, &system) != 0) return true;
  for (const std::uint32_t magic : kNfsCifsSmb2) {
    if (static_cast<std::uint32_t>(system.f_type) == magic) return true;
  }
  return false;
}

// Whether nobody has the file open for writing. If so, nobody will before it is closed.
Quiet take_lease(int file) noexcept {
  if (unreliable_leases(file)) return Quiet::unknown;
  // Who opens the file for writing meanwhile makes the kernel send a signal; the usual one, SIGIO,
  // would end the process, this one is ignored unless somebody asks for it.
  if (fcntl(file, F_SETSIG, SIGURG) != 0) return Quiet::unknown;
  if (fcntl(file, F_SETLEASE, F_RDLCK) == 0) return Quiet::yes;
  return errno == EAGAIN ? Quiet::no : Quiet::unknown;
}

std::optional<std::string> read_all(int file, std::int64_t size) {
  std::string text;
  text.resize(static_cast<std::size_t>(size) + 1);  // one more, to see the end
  std::size_t length = 0;
  while (true) {
    const ssize_t count = read(file, text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
    if (length == text.size()) text.resize(2 * length);
  }
  text.resize(length);
  return text;
}

std::string why(const char* what) {
  return std::string(what) + ": " + std::generic_category().message(errno);
}

// Two writes within one tick of the file system's clock leave the same times behind. So a new text
// is read again at some more polls: for 2 s, which is the coarsest tick there is (FAT).
constexpr int kRereads = 10;

}  // namespace

FileSource::FileSource(std::string path, bool leases) : path_(std::move(path)), leases_(leases) {}

FileSource::Poll FileSource::failed(std::string reason) {
  candidate_.reset();
  seen_.reset();
  if (reason == failure_) return {};
  failure_ = reason;
  return {.outcome = Outcome::unreadable, .text = std::move(reason)};
}

std::optional<FileSource::Stamp> FileSource::stamp_of(int file) {
  struct stat info{};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return Stamp{.device = info.st_dev,
               .inode = info.st_ino,
               .size = info.st_size,
               .modified_ns = info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec,
               .changed_ns = info.st_ctim.tv_sec * kSecond + info.st_ctim.tv_nsec};
}

FileSource::Poll FileSource::poll() {
  // O_PATH opens nothing: it neither waits for a lease nor for the writer of a pipe.
  const Descriptor place(open(path_.c_str(), O_PATH | O_CLOEXEC));
  if (place.get() < 0) return failed(why("cannot be read"));
  const auto stamp = stamp_of(place.get());
  if (!stamp) return failed("is no regular file");
  if (stamp == seen_ && rereads_ == 0 && !again_) {
    failure_.clear();
    return {};
  }
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed(why("cannot be read"));
  return read_when_whole(file.get());
}

FileSource::Poll FileSource::read_when_whole(int file) {
  const Quiet quiet = leases_ ? take_lease(file) : Quiet::unknown;
  if (quiet == Quiet::no) return {};
  const auto before = stamp_of(file);
  if (!before) return failed("is no regular file");
  auto text = read_all(file, before->size);
  if (!text) return failed(why("cannot be read"));
  if (stamp_of(file) != before) return {};  // written meanwhile: the next poll tries again

  failure_.clear();
  const KeyHash digest = hash_key(*text);
  const bool is_new = digest != digest_;
  if (is_new && quiet == Quiet::unknown && digest != candidate_) {
    candidate_ = digest;
    seen_.reset();  // the next poll reads it again
    return {};
  }
  candidate_.reset();
  seen_ = before;
  rereads_ = is_new ? kRereads : std::max(rereads_ - 1, 0);
  if (!is_new && !again_) return {};
  again_ = false;
  digest_ = digest;
  return {.outcome = Outcome::changed, .text = std::move(*text)};
}

}  // namespace stint::config
