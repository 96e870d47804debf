#include "gateway/model_list.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace stint::gateway {

std::string model_list(const config::Snapshot& snapshot, const config::ApiKey& key) {
  boost::json::array data;
  for (const config::Model& model : snapshot.resources().models) {
    if (!key.allows(model.display_name)) continue;
    boost::json::object row;
    row["id"] = model.display_name;
    row["object"] = "model";
    row["created"] = 0;
    row["owned_by"] = model.provider;
    data.push_back(std::move(row));
  }
  boost::json::object list;
  list["object"] = "list";
  list["data"] = std::move(data);
  return boost::json::serialize(list);
}

}  // namespace stint::gateway
