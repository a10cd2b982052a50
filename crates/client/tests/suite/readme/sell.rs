use esker_client::{AsyncPool, Call, Error};

pub async fn sell(url: &str) -> Result<Option<i64>, Error> {
    let pool = AsyncPool::new(url, 4);
    pool.get().await?.call(Call::bucket_put("orders", &[("1", "tea")])).await?;
    let sold = pool.call_once(&Call::bucket_increment("stock", b"sold", 3)).await?;
    Ok(sold.number())
}
