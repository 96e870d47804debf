#include <utility>

#include "config/file_source.h"

namespace stint::config {

ResourceLoader::ResourceLoader(std::string path, Environment environment,
                               OnStoreError on_store_error, int ipv6_prefix)
    : source_(std::move(path)),
      environment_(std::move(environment)),
      on_store_error_(on_store_error),
      ipv6_prefix_(ipv6_prefix) {}

std::optional<ResourceLoader::Change> ResourceLoader::poll() {
  FileSource::Poll poll = source_.poll();
  if (poll.outcome == FileSource::Outcome::unreadable) {
    missing_ = true;
    faults_ = {{source_.path(), 0, 0, "", std::move(poll.text)}};
    return faults_;
  }
  if (poll.outcome == FileSource::Outcome::unchanged) {
    // It came back as it was.
    if (missing_ && !source_.failing()) {
      missing_ = false;
      faults_.clear();
    }
    return std::nullopt;
  }
  missing_ = false;
  auto loaded = load_snapshot(source_.path(), poll.text, environment_, generation_ + 1,
                              on_store_error_, ipv6_prefix_);
  warnings_ = std::move(loaded.warnings);
  faults_ = std::move(loaded.faults);
  if (!loaded.value) return faults_;
  ++generation_;
  current_ = std::move(*loaded.value);
  return current_;
}

}  // namespace stint::config
