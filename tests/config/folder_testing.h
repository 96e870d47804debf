// A folder of its own for each test, and the ways in which people replace files in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stint::config {

class Folder {
 public:
  Folder() {
    // In memory where possible: disks write a file out when it is replaced, a thousand times over.
    const std::string memory = "/dev/shm/";
    const bool usable = access(memory.c_str(), W_OK) == 0;
    std::string name = (usable ? memory : testing::TempDir()) + "stint-config-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path(std::string_view name) const { return path_ / name; }

  // Writes over what is there, or creates it.
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << text;
  }
  // Writes another file and renames it over this one.
  void replace(std::string_view name, std::string_view text) const {
    write("new-file", text);
    std::filesystem::rename(path("new-file"), path(name));
  }
  void remove(std::string_view name) const { std::filesystem::remove_all(path(name)); }

  // As Kubernetes does with a ConfigMap: `name` is a link to ..data/name, and ..data a link to a
  // folder that is swapped for another as a whole.
  void swap(std::string_view name, std::string_view text, int version) const {
    namespace fs = std::filesystem;
    const std::string folder = "..version-" + std::to_string(version);
    fs::create_directory(path(folder));
    write(folder + "/" + std::string(name), text);
    fs::create_symlink(folder, path("..data_tmp"));
    const bool first = !fs::exists(fs::symlink_status(path("..data")));
    const std::string old = first ? "" : fs::read_symlink(path("..data")).string();
    fs::rename(path("..data_tmp"), path("..data"));
    if (first) fs::create_symlink("..data/" + std::string(name), path(name));
    if (!first) fs::remove_all(path(old));
  }

 private:
  std::filesystem::path path_;
};

// Open file handles of this process.
inline std::ptrdiff_t open_handles() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

}  // namespace stint::config
