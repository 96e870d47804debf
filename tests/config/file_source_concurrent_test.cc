// A writer that never rests: whatever is given is whole.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "config/file_source.h"
#include "tests/config/folder_testing.h"

namespace stint::config {
namespace {

// A version says its number at both ends, and is longer than one write.
std::string version(int number) {
  const std::string name = std::to_string(number);
  return name + std::string(100'000 + static_cast<std::size_t>(number), '.') + name;
}

TEST(FileSourceWithABusyWriter, GivesOnlyWholeVersionsAndTheLast) {
  constexpr int kVersions = 300;
  const Folder folder;
  folder.write("f", version(0));
  FileSource source(folder.path("f"));
  // Half of them are written over, which a lease of the reader holds up; half renamed over.
  const std::jthread writer([&] {
    for (int i = 1; i <= kVersions; ++i) {
      if (i % 2 == 0) folder.write("f", version(i));
      if (i % 2 != 0) folder.replace("f", version(i));
    }
  });
  int last = -1;
  while (last < kVersions) {
    const FileSource::Poll poll = source.poll();
    ASSERT_NE(poll.outcome, FileSource::Outcome::unreadable) << poll.text;
    if (poll.outcome != FileSource::Outcome::changed) continue;
    const int number = std::stoi(poll.text);
    ASSERT_EQ(poll.text, version(number));
    ASSERT_GT(number, last);
    last = number;
  }
}

}  // namespace
}  // namespace stint::config
