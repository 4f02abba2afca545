// Tokio: a task for each connection on the current-thread runtime, its fastest on one CPU.

use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo<const SIZE: usize>(mut c: TcpStream) {
    let mut buffer = [0u8; SIZE];
    loop {
        match c.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if c.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn serve(is_large: bool) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("port {}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    loop {
        let (c, _) = listener.accept().await?;
        c.set_nodelay(true)?;
        if is_large {
            tokio::spawn(echo::<32768>(c));
        } else {
            tokio::spawn(echo::<4096>(c));
        }
    }
}

fn main() {
    let is_large = std::env::args().last().map_or(false, |name| name.ends_with("16k"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    if let Err(error) = runtime.block_on(serve(is_large)) {
        eprintln!("{}", error);
        std::process::exit(1);
    }
}
