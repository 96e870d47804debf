// Every way of replacing a file (case C21). Polls follow each other at once: no test waits.
#include "config/file_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/config/folder_testing.h"

namespace stint::config {
namespace {

using Outcome = FileSource::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;

// What several polls give.
std::vector<std::string> texts_of(FileSource& source, int polls = 3) {
  std::vector<std::string> texts;
  for (int i = 0; i < polls; ++i) {
    FileSource::Poll poll = source.poll();
    if (poll.outcome == Outcome::changed) texts.push_back(std::move(poll.text));
    if (poll.outcome == Outcome::unreadable) texts.push_back("unreadable: " + poll.text);
  }
  return texts;
}

TEST(FileSource, GivesATextOnce) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  EXPECT_THAT(texts_of(source, 100), IsEmpty());
}

TEST(FileSource, NoticesAFileWrittenOver) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  folder.write("f", "twice");
  EXPECT_THAT(texts_of(source), ElementsAre("twice"));
  folder.write("f", "");
  EXPECT_THAT(texts_of(source), ElementsAre(""));
}

TEST(FileSource, NoticesTextsOfOneLengthWithinOneTick) {
  const Folder folder;
  folder.write("f", "1000");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("1000"));
  for (int i = 1001; i < 2000; ++i) {
    folder.write("f", std::to_string(i));
    ASSERT_THAT(texts_of(source), ElementsAre(std::to_string(i)));
  }
}

TEST(FileSource, NoticesAFileRenamedOver) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  folder.replace("f", "two");
  EXPECT_THAT(texts_of(source), ElementsAre("two"));
  folder.replace("f", "two");  // another file, the same text
  EXPECT_THAT(texts_of(source), IsEmpty());
}

TEST(FileSource, NoticesAFileRemovedAndCreated) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  folder.remove("f");
  EXPECT_THAT(texts_of(source),
              ElementsAre("unreadable: cannot be read: No such file or directory"));
  EXPECT_TRUE(source.failing());
  folder.write("f", "one");
  EXPECT_THAT(texts_of(source), IsEmpty());
  EXPECT_FALSE(source.failing());
  folder.remove("f");
  folder.write("f", "two");
  EXPECT_THAT(texts_of(source), ElementsAre("two"));
}

TEST(FileSource, WaitsForAFileThatIsNotThereYet) {
  const Folder folder;
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source),
              ElementsAre("unreadable: cannot be read: No such file or directory"));
  folder.write("f", "one");
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
}

TEST(FileSource, NoticesASwappedFolder) {
  for (const bool leases : {true, false}) {
    const Folder folder;
    folder.swap("f", "version 0", 0);
    FileSource source(folder.path("f"), leases);
    EXPECT_THAT(texts_of(source), ElementsAre("version 0"));
    for (int version = 1; version <= 100; ++version) {
      const std::string text = "version " + std::to_string(version);
      folder.swap("f", text, version);
      ASSERT_THAT(texts_of(source), ElementsAre(text));
    }
  }
}

// A file that is being written: half of it is there, and valid by itself.
class HalfWritten {
 public:
  explicit HalfWritten(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::write(file_, "half", 4), 4);
  }
  ~HalfWritten() { finish(); }
  void finish() {
    if (file_ < 0) return;
    EXPECT_EQ(::write(file_, "+half", 5), 5);
    close(file_);
    file_ = -1;
  }

 private:
  int file_;
};

TEST(FileSource, NeverGivesAHalf) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  HalfWritten half(folder.path("f"));
  EXPECT_THAT(texts_of(source, 100), IsEmpty());
  half.finish();
  EXPECT_THAT(texts_of(source), ElementsAre("half+half"));
}

TEST(FileSource, NeverGivesAHalfAtFirst) {
  const Folder folder;
  HalfWritten half(folder.path("f"));
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source, 100), IsEmpty());
  half.finish();
  EXPECT_THAT(texts_of(source), ElementsAre("half+half"));
}

TEST(FileSource, AsksForNothingFromWhoeverOnlyReads) {
  const Folder folder;
  folder.write("f", "one");
  const int reader = open(folder.path("f").c_str(), O_RDONLY | O_CLOEXEC);
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  close(reader);
}

TEST(FileSource, WithoutLeasesTakesWhatTwoPollsFoundUnchanged) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"), false);
  EXPECT_EQ(source.poll().outcome, Outcome::unchanged);
  FileSource::Poll second = source.poll();
  EXPECT_EQ(second.outcome, Outcome::changed);
  EXPECT_EQ(second.text, "one");
  for (int i = 0; i < 5; ++i) {
    folder.write("f", std::string(static_cast<std::size_t>(i) + 5, 'x'));  // still at it
    EXPECT_EQ(source.poll().outcome, Outcome::unchanged);
  }
  EXPECT_THAT(texts_of(source), ElementsAre("xxxxxxxxx"));
}

TEST(FileSource, GivesATextAgainWhenAsked) {
  const Folder folder;
  folder.write("f", "one");
  FileSource source(folder.path("f"));
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
  source.again();
  EXPECT_THAT(texts_of(source), ElementsAre("one"));
}

TEST(FileSource, RefusesWhatIsNoFile) {
  const Folder folder;
  FileSource a_folder(folder.path(""));
  EXPECT_THAT(texts_of(a_folder), ElementsAre("unreadable: is no regular file"));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  FileSource pipe(folder.path("pipe"));  // would wait for a writer for ever
  EXPECT_THAT(texts_of(pipe), ElementsAre("unreadable: is no regular file"));
}

// ResourceLoader

constexpr const char* kGood = "_format_version: \"1\"\nmodels: []\n";
constexpr const char* kBad = "_format_version: \"1\"\nmodel: []\n";

std::string text_of(const std::optional<ResourceLoader::Change>& change) {
  if (!change) return "nothing";
  if (const auto* snapshot = std::get_if<ResourceLoader::Snapshots>(&*change)) {
    return "snapshot " + std::to_string((*snapshot)->generation());
  }
  return to_string(std::get<std::vector<Fault>>(*change).at(0));
}

TEST(ResourceLoader, KeepsTheLastGoodSnapshot) {
  const Folder folder;
  folder.write("r", kGood);
  const std::string path = folder.path("r");
  ResourceLoader loader(path, {});
  EXPECT_EQ(loader.current(), nullptr);
  EXPECT_EQ(text_of(loader.poll()), "snapshot 1");
  EXPECT_EQ(text_of(loader.poll()), "nothing");
  const auto good = loader.current();

  folder.write("r", kBad);
  const std::string fault = path + ":2:1: model: unknown key; did you mean models?";
  EXPECT_EQ(text_of(loader.poll()), fault);
  EXPECT_EQ(text_of(loader.poll()), "nothing");
  EXPECT_EQ(loader.current(), good);
  EXPECT_EQ(loader.faults().size(), 1U);
  EXPECT_EQ(loader.generation(), 1U);
  loader.again();
  EXPECT_EQ(text_of(loader.poll()), fault);

  folder.remove("r");
  EXPECT_EQ(text_of(loader.poll()), path + ": cannot be read: No such file or directory");
  EXPECT_EQ(text_of(loader.poll()), "nothing");
  EXPECT_EQ(loader.current(), good);

  folder.write("r", kGood);
  EXPECT_EQ(text_of(loader.poll()), "snapshot 2");
  EXPECT_NE(loader.current(), good);
  EXPECT_THAT(loader.faults(), IsEmpty());
  EXPECT_EQ(loader.generation(), 2U);
}

TEST(ResourceLoader, GivesTheOutageRuleToEverySnapshot) {
  const Folder folder;
  const std::string text = std::string(kGood) + "api_keys: [{key: a, rate_limit: {rpm: 1}}]\n";
  folder.write("r", text);
  ResourceLoader loader(folder.path("r"), {}, OnStoreError::deny);
  EXPECT_EQ(text_of(loader.poll()), "snapshot 1");
  EXPECT_EQ(loader.current()->late().at(0).on_store_error, OnStoreError::deny);
  folder.write("r", text + "# other\n");
  EXPECT_EQ(text_of(loader.poll()), "snapshot 2");
  EXPECT_EQ(loader.current()->late().at(0).on_store_error, OnStoreError::deny);
}

TEST(ResourceLoader, ForgetsThatAFileWasMissingWhenItIsBack) {
  const Folder folder;
  folder.write("r", kGood);
  ResourceLoader loader(folder.path("r"), {});
  EXPECT_EQ(text_of(loader.poll()), "snapshot 1");
  folder.remove("r");
  EXPECT_THAT(text_of(loader.poll()), testing::HasSubstr("cannot be read"));
  EXPECT_EQ(loader.faults().size(), 1U);
  folder.write("r", kGood);
  EXPECT_EQ(text_of(loader.poll()), "nothing");
  EXPECT_THAT(loader.faults(), IsEmpty());
}

TEST(ResourceLoader, FreesWhatItReplaces) {
  const Folder folder;
  const auto text = [](int i) {
    return std::string(kGood) + "api_keys: [{key: a, rate_limit: {rpm: " + std::to_string(i) +
           "}}]\n";
  };
  folder.write("r", text(0));
  ResourceLoader loader(folder.path("r"), {});
  EXPECT_EQ(text_of(loader.poll()), "snapshot 1");
  const auto handles = open_handles();
  for (int i = 1; i <= 1'000; ++i) {
    const std::weak_ptr<const Snapshot> old = loader.current();
    folder.replace("r", text(i));
    ASSERT_EQ(text_of(loader.poll()), "snapshot " + std::to_string(i + 1));
    ASSERT_TRUE(old.expired());
    ASSERT_EQ(loader.current()->late().at(0).limits.at(0).quota, i);
  }
  EXPECT_EQ(open_handles(), handles);
}

}  // namespace
}  // namespace stint::config
