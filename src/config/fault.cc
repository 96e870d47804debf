#include "config/fault.h"

namespace stint::config {

std::string to_string(const Fault& fault) {
  std::string text = fault.file;
  if (fault.line > 0) text += ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column);
  if (!text.empty()) text += ": ";
  if (!fault.key.empty()) text += fault.key + ": ";
  return text + fault.message;
}

}  // namespace stint::config
