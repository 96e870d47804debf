// Notices when a file was replaced, reads it when it is whole, and makes snapshots of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/fault.h"
#include "config/snapshot.h"
#include "stint/outage.h"

namespace stint::config {

// The text of a file, once for each change of it, however it was replaced: written over, another
// renamed over it, removed and created anew, a symbolic link on the way to it changed.
//
// Never gives what somebody is still writing: a read lease (fcntl F_SETLEASE, F_RDLCK) is granted
// by the kernel only while nobody has the file open for writing, and whoever opens it so meanwhile
// waits until it was read. Where leases cannot be had (network file systems; a file of another
// user, without CAP_LEASE) a text is taken when two polls in a row found it: there a writer that
// pauses for longer than that in the middle of a file is not noticed. Renaming over and swapping
// links are safe everywhere.
//
// A poll that finds nothing new costs one stat. Thread rule: one thread at a time.
class FileSource {
 public:
  // `leases` false: as where they cannot be had.
  explicit FileSource(std::string path, bool leases = true);

  enum class Outcome : std::uint8_t {
    unchanged,
    changed,     // `text` is new, and whole
    unreadable,  // `text` says why; told once
  };
  struct Poll {
    Outcome outcome = Outcome::unchanged;
    std::string text{};
  };
  // To be called about every 200 ms. The first call gives the text, unless somebody is writing it;
  // where leases cannot be had, the second.
  [[nodiscard]] Poll poll();

  // The next text is given even if it is that of the last time (SIGHUP).
  void again() noexcept { again_ = true; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // The last poll found no file, or none that can be read.
  [[nodiscard]] bool failing() const noexcept { return !failure_.empty(); }

 private:
  // What tells versions of a file apart without reading it.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  [[nodiscard]] static std::optional<Stamp> stamp_of(int file);
  [[nodiscard]] Poll read_when_whole(int file);
  [[nodiscard]] Poll failed(std::string why);

  std::string path_;
  bool leases_;
  bool again_ = false;
  std::optional<Stamp> seen_;         // of the text that was read last
  int rereads_ = 0;                   // polls that read it once more, whatever its stamp
  std::optional<KeyHash> candidate_;  // what the poll before found, where there are no leases
  std::optional<KeyHash> digest_;     // of the text that was given last
  std::string failure_;
};

// Keeps the snapshot of a resources file up to date.
// A bad file changes nothing: the last good snapshot stays.
// Thread rule: one thread at a time; the snapshots it gives go to any thread.
class ResourceLoader {
 public:
  using Snapshots = std::shared_ptr<const Snapshot>;
  using Change = std::variant<Snapshots, std::vector<Fault>>;

  // `on_store_error`: see Snapshot::create. `ipv6_prefix`: see parse_resources.
  ResourceLoader(std::string path, Environment environment,
                 OnStoreError on_store_error = OnStoreError::local, int ipv6_prefix = kIpv6Prefix);

  // To be called about every 200 ms. Nothing: no change. Else a new snapshot, or why there is none;
  // each is told once.
  [[nodiscard]] std::optional<Change> poll();

  // The next text is loaded even if it did not change (SIGHUP).
  void again() noexcept { source_.again(); }

  [[nodiscard]] const Snapshots& current() const noexcept { return current_; }  // null at first
  // Why the file as it is now is not in force; empty if it is.
  [[nodiscard]] const std::vector<Fault>& faults() const noexcept { return faults_; }
  // Of the text that was loaded last.
  [[nodiscard]] const std::vector<Fault>& warnings() const noexcept { return warnings_; }
  // The number of snapshots made so far, and of the current one.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

 private:
  FileSource source_;
  Environment environment_;
  OnStoreError on_store_error_;
  int ipv6_prefix_;
  Snapshots current_;
  std::vector<Fault> faults_;
  bool missing_ = false;  // the fault is that there is no file
  std::vector<Fault> warnings_;
  std::uint64_t generation_ = 0;
};

}  // namespace stint::config
